"""The paper's data sets, and how it asks their questions."""
