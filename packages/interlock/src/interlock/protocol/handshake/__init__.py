"""Connections that begin with `initialize` (2024-11-05 to 2025-11-25), without I/O. Newer revisions
do not use this package.
"""
