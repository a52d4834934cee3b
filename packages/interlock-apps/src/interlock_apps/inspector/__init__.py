"""The MCP inspector: connections to servers, their recorded messages, and a page that shows both.

Import from the modules: `session` (connections), `site` (the page), `acts` (requests of the page).
"""
