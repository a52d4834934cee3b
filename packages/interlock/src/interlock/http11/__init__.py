"""HTTP/1.1 client: connections, connection pool, proxies, and `SafeFetch`."""
