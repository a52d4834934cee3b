"""Chaos test: a server under mixed load, while its processes, store, clock and connections fail."""
