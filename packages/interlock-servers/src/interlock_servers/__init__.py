"""Servers that are useful as they are, and examples to read: each stands on the face of the house alone."""
