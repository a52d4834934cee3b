"""Thin shells around the pure floors: the only rooms with sockets, pipes and processes."""
