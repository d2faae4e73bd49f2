"""Which delivered answers are right, and who says so."""
