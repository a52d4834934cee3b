"""The HTTP/1.1 server beneath the endpoint, on asyncio and httptools. It runs any ASGI 3 app."""
