"""`interlock auth`: log in to servers and out, show stored logins, and diagnose failed ones."""
