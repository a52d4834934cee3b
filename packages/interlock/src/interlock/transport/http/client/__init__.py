"""The client's side of the Streamable HTTP transport."""
