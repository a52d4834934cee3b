"""Managed servers: naming, policy, pins, threat scan and log."""
