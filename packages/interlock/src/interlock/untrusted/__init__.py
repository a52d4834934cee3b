"""Untrusted text made safe to show: invisible characters, homographs and spoofed URLs."""
