"""server.json: the description of a server in the MCP registry, and the rules that it must keep.

The rules are those of the official schema of 2025-12-11 and of the registry: the form of names, the
lengths of texts, and exact versions.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
"""The schema that a new server.json names."""

_PUBLISHER: Final = "io.modelcontextprotocol.registry/publisher-provided"
_MOST_META = 4096  # bytes
_RANGE: Final = re.compile(r"^(latest|[\^~<>=*].*|.*[*|,].*|.*\.[xX](\..*)?|.* - .*)$")
_NAME: Final = r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"
_URL: Final = r"^(https?://[^\s]+|\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\s]*)$"
Text = Annotated[str, Meta(min_length=1, max_length=100)]
Version = Annotated[str, Meta(min_length=1, max_length=255)]


class BadServerJson(Exception):
    """A server.json breaks a rule. The text says which, and where."""


class RegistryInput(Struct, rename="camel", frozen=True, kw_only=True):
    """A value that the user may have to give.

    Attributes:
        description: What it is for.
        is_required: Whether the server needs it.
        is_secret: Whether it must not be shown.
        default: The value if the user gives none.
        value: A fixed value. `{name}` in it stands for a variable.
        choices: The allowed values; any if there are none.
        placeholder: An example.
        variables: The variables in `value`.
    """

    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str | None = None
    value: str | None = None
    choices: list[str] = []
    placeholder: str = ""
    variables: dict[str, RegistryInput] = {}


class NamedInput(RegistryInput, rename="camel", frozen=True, kw_only=True):
    """A header or an environment variable."""

    name: str


class Argument(RegistryInput, rename="camel", frozen=True, kw_only=True):
    """A word of a command line: positional, or a flag with its value.

    Attributes:
        type: "positional" or "named".
        name: The flag, with its dashes.
        value_hint: A label for a positional argument.
        is_repeated: Whether it may be given several times.
    """

    type: str
    name: str = ""
    value_hint: str = ""
    is_repeated: bool = False


class RegistryTransport(Struct, rename="camel", frozen=True, kw_only=True):
    """How a client talks to a server.

    Attributes:
        type: "stdio", "streamable-http" or "sse".
        url: The URL of a remote server. `{name}` in it stands for a variable.
        headers: The headers of each request.
        variables: The variables in the URL.
    """

    type: str
    url: Annotated[str, Meta(pattern=_URL)] | None = None
    headers: list[NamedInput] = []
    variables: dict[str, RegistryInput] = {}


class Package(Struct, rename="camel", frozen=True, kw_only=True):
    """A package that contains the server.

    Attributes:
        registry_type: "pypi", "npm", "oci", ...
        identifier: The name of the package.
        version: The exact version.
        transport: How a client talks to it.
        file_sha256: The digest of the package's file, in hexadecimal.
        runtime_hint: The program that runs it, such as "uvx".
        runtime_arguments: Arguments of that program.
        package_arguments: Arguments of the server.
        environment_variables: Its environment variables.
    """

    registry_type: str
    identifier: str
    transport: RegistryTransport
    version: Version | None = None
    file_sha256: Annotated[str, Meta(pattern="^[a-f0-9]{64}$")] | None = msgspec.field(
        name="fileSha256", default=None
    )
    runtime_hint: str = ""
    runtime_arguments: list[Argument] = []
    package_arguments: list[Argument] = []
    environment_variables: list[NamedInput] = []


class Repository(Struct, rename="camel", frozen=True, kw_only=True):
    """Where the source code is."""

    url: str
    source: str
    subfolder: str | None = None


class ServerJson(Struct, rename="camel", frozen=True, kw_only=True):
    """A server in the registry.

    Attributes:
        name: Its name: a reversed domain, a slash and a word.
        description: What it does, in at most 100 characters.
        version: Its version.
        title: Its name for people.
        packages: The packages that contain it.
        remotes: The URLs where it runs.
        repository: Where its source code is.
        meta: Metadata of the publisher.
    """

    name: Annotated[str, Meta(min_length=3, max_length=200, pattern=_NAME)]
    description: Text
    version: Version
    title: Text | None = None
    packages: list[Package] = []
    remotes: list[RegistryTransport] = []
    repository: Repository | None = None
    meta: dict[str, Any] = msgspec.field(name="_meta", default_factory=dict)


def parse(document: bytes | dict[str, Any]) -> ServerJson:
    """Read and check a server.json.

    Args:
        document: The file, or its decoded content.

    Returns:
        The server.

    Raises:
        BadServerJson: It breaks a rule.
    """
    try:
        if isinstance(document, bytes):
            document = msgspec.json.decode(document, type=dict[str, Any])
        server = msgspec.convert(document, ServerJson)
    except msgspec.ValidationError as bad:
        raise BadServerJson(_plain(str(bad))) from None
    except msgspec.DecodeError as bad:
        raise BadServerJson(f"it is not JSON: {bad}") from None
    if _RANGE.match(server.version):
        raise BadServerJson(f"the version {server.version!r} is a range: give an exact version")
    for package in server.packages:
        if package.version is not None and _RANGE.match(package.version):
            raise BadServerJson(
                f"the version {package.version!r} of {package.identifier} is a range: give an "
                "exact version"
            )
        if package.transport.type not in ("stdio", "streamable-http", "sse"):
            raise BadServerJson(f"unknown transport {package.transport.type!r}")
        for one in (*package.package_arguments, *package.runtime_arguments):
            if one.type == "positional" and not one.value_hint and one.value is None:
                raise BadServerJson("a positional argument needs a value or a valueHint")
            if one.type == "named" and not one.name:
                raise BadServerJson("a named argument needs a name")
            if one.type not in ("positional", "named"):
                raise BadServerJson(f"unknown type of argument {one.type!r}")
    for remote in server.remotes:
        if remote.type not in ("streamable-http", "sse") or remote.url is None:
            raise BadServerJson("a remote is streamable-http or sse, and has a url")
    given = server.meta.get(_PUBLISHER)
    if given is not None and len(msgspec.json.encode(given)) > _MOST_META:
        raise BadServerJson(f"_meta has more than {_MOST_META} bytes")
    return server


def digest(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a server.json, in hexadecimal, whatever the order of its members."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(words: str) -> str:
    """A message of the decoder as a sentence."""
    return words.replace("Object missing required field", "there is no").replace("`", "'")
