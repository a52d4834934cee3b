"""OAuth clients: registration, metadata documents, keys, redirect URIs and authentication."""
