"""The basis of every page: access control, event stream, sandbox of MCP Apps, scripts, styles."""
