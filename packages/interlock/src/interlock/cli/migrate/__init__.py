"""`interlock migrate`: rewrite code for other SDKs, and compare the old and the new server."""
