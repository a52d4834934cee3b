"""Conversion between bytes and protocol types, under any revision, without I/O."""
