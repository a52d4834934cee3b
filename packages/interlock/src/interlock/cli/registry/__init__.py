"""The MCP registry: publish a server, search for servers, and add one to a configuration."""
