"""Running a server as a program: event loop, HTTP server, worker processes."""
