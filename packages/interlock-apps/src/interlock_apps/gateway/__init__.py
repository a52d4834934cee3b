"""The gateway: one endpoint for many servers, with identities, policy, limits and an audit."""
