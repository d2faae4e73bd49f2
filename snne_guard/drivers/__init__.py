"""Carry out a guarded call: by threads or by tasks."""
