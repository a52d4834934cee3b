"""`interlock run`: finds the server object of a file and serves it."""
