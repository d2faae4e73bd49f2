"""Draws from models: what is asked for, what comes back, which replies count."""
