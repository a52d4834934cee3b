"""Vaults: small records, secrets too, in memory, a file, SQLite, Redis or the OS keyring."""
