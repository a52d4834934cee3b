"""Bytes to protocol types and back, under any revision, without I/O."""
