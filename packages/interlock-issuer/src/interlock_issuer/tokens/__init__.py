"""Access tokens, the keys that sign them, and DPoP."""
