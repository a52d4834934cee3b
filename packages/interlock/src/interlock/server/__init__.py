"""The library to write servers with: the Server, the Context of a running call, and what an author
hands in.
"""
