"""Skills of servers in the host: how they are approved, loaded and read, and what is asked meanwhile (SEP-2640)."""
