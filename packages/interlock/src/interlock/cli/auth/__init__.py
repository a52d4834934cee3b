"""`interlock auth`: log in, log out, see what is saved, and diagnose a login."""
