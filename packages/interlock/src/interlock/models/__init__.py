"""Models: the seam, the providers behind it, and how one is chosen."""
