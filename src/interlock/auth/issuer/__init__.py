"""A small authorization server: for development, and for teams that have none."""
