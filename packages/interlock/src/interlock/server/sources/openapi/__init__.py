"""OpenAPI: the operations of an HTTP API as tools."""
