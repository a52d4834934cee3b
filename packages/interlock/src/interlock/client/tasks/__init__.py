"""Tasks of a client: calls that the server finishes later, and questions that the client does."""
