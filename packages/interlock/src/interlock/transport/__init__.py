"""Transports: stdio, memory, sockets and HTTP. Only this package and `http11` open sockets, pipes
and processes.
"""
