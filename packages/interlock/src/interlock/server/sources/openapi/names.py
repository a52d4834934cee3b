"""Names of tools and arguments for an OpenAPI document: legal, short, stable and unique.

A name depends on the operation alone, and on operations that would have the same name, but not on
the order of the document. A client can therefore save it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from .operations import ApiOperation

LONGEST_NAME = 64  # characters: the limit of several models and clients
_DIGEST = 8  # characters of a hash in a name that is cut, or that two operations would share
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_ILLEGAL_IN_PATH = re.compile(r"[^A-Za-z0-9]+")


def named(operations: Sequence[ApiOperation]) -> list[ApiOperation]:
    """Return operations with the names of their tools.

    The name is the `operationId`, or the method with the words of the path. Two operations of one
    name get a hash of their method and path, except for one whose `operationId` is that name.
    """
    plain = [_plain(operation) for operation in operations]
    shared = Counter(plain)
    exact = Counter(operation.operation_id for operation in operations)
    taken: set[str] = set()
    names: dict[int, str] = {}
    for place, (operation, name) in enumerate(zip(operations, plain, strict=True)):
        is_exact = operation.operation_id == name and exact[name] == 1
        if shared[name] == 1 or is_exact:
            names[place] = name
            taken.add(name)
    for place, operation in enumerate(operations):
        if place not in names:
            names[place] = _distinct(plain[place], operation.place, taken)
            taken.add(names[place])
    return [replace(operation, name=names[place]) for place, operation in enumerate(operations)]


def _plain(operation: ApiOperation) -> str:
    words = operation.operation_id or f"{operation.method.lower()}_{operation.path}"
    illegal = _ILLEGAL if operation.operation_id else _ILLEGAL_IN_PATH
    name = illegal.sub("_", words).strip("_") or operation.method.lower()
    return _cut(name, words) if len(name) > LONGEST_NAME else name


def _distinct(name: str, key: str, taken: set[str]) -> str:
    found = _cut(name, key)
    more = _DIGEST
    while found in taken:
        more += _DIGEST
        found = _cut(name, key, more)
    return found


def _cut(name: str, key: str, digest: int = _DIGEST) -> str:
    """Return a name that ends with a hash of `key`, and is short enough."""
    return f"{name[: LONGEST_NAME - digest - 1]}_{sha256(key.encode()).hexdigest()[:digest]}"


def argument_names(wanted: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of arguments for pairs of a place ("path", "body") and a name.

    Names that collide get their place in front: `path_id` and `query_id`.
    """
    pairs = [(place, _argument(name)) for place, name in wanted]
    shared = Counter(name for _, name in pairs)
    found: list[str] = []
    taken = {name for name, times in shared.items() if times == 1}
    for place, name in pairs:
        if shared[name] == 1:
            found.append(name)
            continue
        apart = f"{place}_{name}"[:LONGEST_NAME]
        number = 2
        unique = apart
        while unique in taken:
            unique = f"{apart[: LONGEST_NAME - 4]}_{number}"
            number += 1
        taken.add(unique)
        found.append(unique)
    return found


def _argument(name: str) -> str:
    legal = _ILLEGAL.sub("_", name).strip("_") or "value"
    return _cut(legal, name) if len(legal) > LONGEST_NAME else legal
