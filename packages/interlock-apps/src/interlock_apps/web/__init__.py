"""The host's web face: pages for one person at this machine, and nobody else."""
