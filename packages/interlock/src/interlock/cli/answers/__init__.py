"""Answers to the requests of a server: elicitation and sampling, at a terminal or given."""
