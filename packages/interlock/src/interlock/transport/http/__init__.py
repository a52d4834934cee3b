"""The Streamable HTTP transport: the ASGI endpoint and its parts."""
