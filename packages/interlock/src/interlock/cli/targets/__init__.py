"""The targets of a command: how they are typed, found and reached."""
