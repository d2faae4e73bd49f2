"""The parts of the adapter for the openai package; ``openai.py`` is what is public."""
