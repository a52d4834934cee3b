"""Hot reload: serves the newest version of a file over one connection."""
