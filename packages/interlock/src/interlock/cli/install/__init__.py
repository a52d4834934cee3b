"""`interlock install`: add servers to the configuration files of clients."""
