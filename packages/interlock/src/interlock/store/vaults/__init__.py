"""Vaults: small records, secret ones too, by kind and key, in memory, a file, SQLite, Redis or the
system's keyring.
"""
