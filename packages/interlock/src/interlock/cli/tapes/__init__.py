"""The commands that record and replay tapes."""
