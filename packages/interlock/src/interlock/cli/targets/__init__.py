"""What a command connects to: how it is typed, found and reached."""
