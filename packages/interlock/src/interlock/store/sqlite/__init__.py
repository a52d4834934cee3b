"""SQLite: files of ours and their writer thread, and the store of one machine in such a file."""
