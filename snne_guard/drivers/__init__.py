"""Carry out a guarded call: in threads or in tasks."""
