"""The commands of a client: list, call, read and prompt, with their options and connection."""
