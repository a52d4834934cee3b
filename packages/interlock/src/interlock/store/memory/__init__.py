"""The store of one process, in memory."""
