"""Composition: servers, clients and other sources whose features a server offers as its own."""
