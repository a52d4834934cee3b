"""The server library: the Server, the Context of a running call, and the types of its options."""
