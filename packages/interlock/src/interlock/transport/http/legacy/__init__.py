"""Sessions, GET streams and the HTTP+SSE transport of the handshake revisions."""
