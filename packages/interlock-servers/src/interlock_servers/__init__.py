"""Reference servers: useful as they are, and built on the public API of the library alone."""
