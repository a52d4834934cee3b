"""`interlock auth`: log in to servers and out again, see what is kept, and why a log-in does not
work; and an authorization server.
"""
