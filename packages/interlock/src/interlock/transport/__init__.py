"""Transports: stdio, memory, sockets and HTTP. The only packages that open sockets, pipes and
processes, beside `http11`.
"""
