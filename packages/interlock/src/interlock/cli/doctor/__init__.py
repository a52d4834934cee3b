"""`interlock doctor` and `interlock lint`: what is wrong with a server or a host."""
