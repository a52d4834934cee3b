"""SQLite: Interlock's files and their writer thread, and the store of one machine in such a
file.
"""
