"""OpenAPI documents: reading one, and resolving the JSON pointers in it.

Nothing is fetched: a reference that leads outside the document is an error.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from ....wire.jsonrpc import READ_ERRORS

DocumentSource = str | os.PathLike[str] | bytes | Mapping[str, Any]
"""A document: the path of a file, its bytes, or its content."""

_MOST_NODES = 2_000_000  # of a YAML document, whose aliases can repeat a part without end
_YAML = (".yaml", ".yml")


class OpenApiError(ValueError):
    """An OpenAPI document, an operation of it, or an option for it cannot be used."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class ApiDocument:
    """An OpenAPI document of version 3.0 or 3.1.

    Attributes:
        content: The document as JSON data.
        is_30: Whether its schemas are those of 3.0, which is not a dialect of JSON Schema.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        version = content.get("openapi")
        if "swagger" in content and version is None:
            raise OpenApiError(
                f"the document is Swagger {content['swagger']}; convert it to OpenAPI 3.0 or 3.1"
            )
        if not isinstance(version, str) or not version.startswith(("3.0", "3.1")):
            raise OpenApiError(f"the document needs openapi: 3.0 or 3.1; it has {version!r:.40}")
        self.content = content
        self._targets: dict[str, str] = {}
        self._parts: dict[str, Any] = {}
        self.is_30 = version.startswith("3.0")

    @property
    def title(self) -> str:
        """The title of the API, on one line."""
        return " ".join(str(member(self.content, "info").get("title", "")).split())

    @property
    def version(self) -> str:
        """The version of the API."""
        return str(member(self.content, "info").get("version", ""))

    def at(self, reference: str) -> Any:
        """Return the part of the document that a reference names.

        Raises:
            OpenApiError: The reference leads outside the document, or nowhere.
        """
        if reference in self._parts:
            return self._parts[reference]
        if not reference.startswith("#/"):
            raise OpenApiError(
                f"the reference {reference!r:.200} leads outside the document, and nothing is"
                " fetched; bundle the parts into one document"
            )
        node: Any = self.content
        for piece in reference[2:].split("/"):
            key = unquote(piece).replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
                node = node[int(key)]
            else:
                raise OpenApiError(f"the reference {reference!r:.200} leads nowhere")
        self._parts[reference] = node
        return node

    def target(self, reference: str) -> str:
        """Follow references that lead to nothing but another reference; return the last one.

        Raises:
            OpenApiError: The references form a circle, or lead nowhere.
        """
        found = self._targets.get(reference)
        if found is None:
            found = self._targets[reference] = self._last(reference)
        return found

    def _last(self, reference: str) -> str:
        seen = {reference}
        while True:
            node = self.at(reference)
            if not isinstance(node, dict) or len(node) != 1 or "$ref" not in node:
                return reference
            reference = str(node["$ref"])
            if reference in seen:
                raise OpenApiError(f"the reference {reference!r:.200} leads back to itself")
            seen.add(reference)

    def resolve(self, node: Any) -> Mapping[str, Any]:
        """Return an object of the document, or the one that its `$ref` names.

        Raises:
            OpenApiError: The reference cannot be followed, or there is no object.
        """
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            node = self.at(self.target(node["$ref"]))
        if not isinstance(node, dict):
            raise OpenApiError(f"an object is expected, not {node!r:.40}")
        return node


def read_document(source: DocumentSource) -> ApiDocument:
    """Read a document: JSON, or YAML if the extra `install` is present.

    Raises:
        OpenApiError: The document cannot be read, or is not of OpenAPI 3.0 or 3.1.
    """
    if isinstance(source, dict):
        return ApiDocument(source)
    if isinstance(source, Mapping):  # its objects may be such mappings too
        return ApiDocument(_PlainData("the document").of(source))
    if isinstance(source, bytes):
        text = source
        name = "the document"
        is_yaml = not source.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    else:
        path = Path(source)
        name = str(path)
        try:
            text = path.read_bytes()
        except OSError as bad:
            raise OpenApiError(f"{name} cannot be read: {bad.strerror or bad}") from None
        is_yaml = path.suffix.lower() in _YAML
    content = _read_yaml(text, name) if is_yaml else _read_json(text, name)
    if not isinstance(content, dict):
        raise OpenApiError(f"{name} is not an OpenAPI document: it has no object at its root")
    return ApiDocument(content)


def _read_json(text: bytes, name: str) -> Any:
    try:
        return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    except READ_ERRORS as bad:
        raise OpenApiError(f"{name} is not valid JSON: {bad}") from None


def _read_yaml(text: bytes, name: str) -> Any:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise OpenApiError(
            f"{name} is YAML, which needs: pip install 'interlock[install]'"
        ) from None
    try:
        return _PlainData(name).of(YAML(typ="safe").load(text))
    except (YAMLError, UnicodeDecodeError, RecursionError) as bad:
        raise OpenApiError(f"{name} is not valid YAML: {str(bad).splitlines()[0]}") from None


class _PlainData:
    """Data of YAML or of other mappings as JSON data: keys such as 200 become strings, and dates
    their text.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sizes: dict[int, int] = {}  # nodes of each list and object; 0 while it is counted
        self._counted: list[Any] = []  # kept, so that no other part gets the id of one

    def of(self, value: Any) -> Any:
        """Return a value as JSON data.

        Raises:
            OpenApiError: Its aliases make it too large, or lead back to themselves.
        """
        # Counted before anything is copied: a few hundred bytes can stand for billions of nodes.
        if self._size(value) > _MOST_NODES:
            raise OpenApiError(f"{self._name} is too large: its aliases repeat themselves")
        return self._copied(value)

    def _size(self, value: Any) -> int:
        """The number of nodes of a value. What aliases share is looked at once."""
        if not isinstance(value, Mapping | list | tuple):
            return 1
        size = self._sizes.get(id(value))
        if size is None:
            self._sizes[id(value)] = 0
            self._counted.append(value)
            parts = value.values() if isinstance(value, Mapping) else value
            size = self._sizes[id(value)] = 1 + sum(map(self._size, parts))
        elif not size:
            raise OpenApiError(f"{self._name} has an alias that leads back to itself")
        return size

    def _copied(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {_key(name): self._copied(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._copied(part) for part in value]
        if isinstance(value, datetime.date):
            return value.isoformat()
        return value


def _key(name: Any) -> str:
    if isinstance(name, bool):
        return "true" if name else "false"
    return str(name)


def member(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a member of an object that is an object itself; an empty one if there is none."""
    found = node.get(name)
    return found if isinstance(found, dict) else {}
