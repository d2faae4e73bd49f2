"""What an evaluation found, as one page for a browser."""
