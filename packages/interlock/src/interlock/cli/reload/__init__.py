"""Serving the newest version of a file behind one pipe."""
