"""The commands that put a model and a person in front of servers."""
