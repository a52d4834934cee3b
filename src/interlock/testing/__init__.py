"""What a test of a server or a client needs."""
