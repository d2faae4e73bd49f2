"""Labels that people give to recorded answers, and in which order they are asked."""
