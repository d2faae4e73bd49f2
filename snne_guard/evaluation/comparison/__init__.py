"""Recordings through every method: what is planned, run, ranked, varied and told."""
