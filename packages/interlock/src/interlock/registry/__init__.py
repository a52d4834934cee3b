"""The MCP registry: a client of its interface, server.json, and offers that can be installed.

`Registry` searches, `launch_of` turns a server of the registry into a command with an exact
version or an address, and `RegistryPins` remembers what was installed.
"""

from __future__ import annotations

from .client import ADDRESS, VARIABLE, Registry, RegistryError, registry_address
from .command_line import CannotRun, Launch
from .offers import (
    ChangedOffer,
    RegistryOffer,
    RegistryPins,
    launch_of,
    offer_inputs,
    offer_of,
    status_of,
)
from .server_json import SCHEMA, BadServerJson, RegistryInput, ServerJson, digest, parse

__all__ = [
    "ADDRESS",
    "SCHEMA",
    "VARIABLE",
    "BadServerJson",
    "CannotRun",
    "ChangedOffer",
    "Launch",
    "Registry",
    "RegistryError",
    "RegistryInput",
    "RegistryOffer",
    "RegistryPins",
    "ServerJson",
    "digest",
    "launch_of",
    "offer_inputs",
    "offer_of",
    "parse",
    "registry_address",
    "status_of",
]
