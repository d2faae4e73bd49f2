"""How well an uncertainty orders answers, and how sure that is."""
