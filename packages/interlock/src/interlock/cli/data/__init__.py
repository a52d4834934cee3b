"""`interlock data`: back up, restore and check data files, and rotate the keys of vaults."""
