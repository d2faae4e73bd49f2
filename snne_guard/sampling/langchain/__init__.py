"""Draws from LangChain chat models."""
