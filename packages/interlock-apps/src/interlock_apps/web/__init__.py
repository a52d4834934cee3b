"""The kit of every page: access control, event stream, sandbox for MCP Apps, scripts and styles."""
