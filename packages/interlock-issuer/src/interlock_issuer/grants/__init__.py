"""Grants: authorization, token endpoint, device flow, trusted issuers, revocation."""
