"""Putting a server into the configuration files of clients, and nothing else in them changed."""
