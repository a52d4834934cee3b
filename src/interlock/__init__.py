"""Interlock: the Model Context Protocol, whole."""
