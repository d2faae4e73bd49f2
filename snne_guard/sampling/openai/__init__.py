"""Draw from the OpenAI API, and from servers that speak its protocol."""
