"""`interlock migrate`: rewrite servers, clients and tests from other SDKs, and compare old and new."""
