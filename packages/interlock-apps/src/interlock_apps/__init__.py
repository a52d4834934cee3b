"""Programs for people: the host, its pages and its commands."""
