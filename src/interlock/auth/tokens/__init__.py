"""How a server finds out what a token is worth: one verifier for each kind of token, and one for several kinds at once."""
