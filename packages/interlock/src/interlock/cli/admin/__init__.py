"""`interlock admin`: see what a running server does, end sessions and calls, drain workers."""
