"""Analysis of an untrusted schema: dialect, references, patterns, and the cost of validation."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Literal

# The supported dialects, by name. In `$schema`, http and https are equal, and a trailing `#` is
# optional (`JSC-01` to `JSC-03`).
DIALECTS: Mapping[str, str] = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}

# Bounds (`JSC-08`). Ordinary schemas are far below them; a schema made to exhaust the validator is
# not.
MAX_DEPTH = 128  # nested objects and lists, in a schema or in a value
MAX_SUBSCHEMAS = 10_000
# nested active subschemas; the engine recurses, and 512 KiB of stack must be enough
MAX_STACK = 640
MAX_WEIGHT = 1_000_000  # subschemas that may apply on one path from a value's root to a leaf

# How the subschemas of a keyword apply: to the same value, to each item or one item each, to each
# property or one property each, or only by reference.
Role = Literal["here", "each_item", "one_item", "each_property", "one_property", "aside"]
_ROLES: dict[str, Role] = {
    **dict.fromkeys(
        (
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentSchemas",
            "dependencies",
        ),
        "here",
    ),
    **dict.fromkeys(("items", "additionalItems", "unevaluatedItems", "contains"), "each_item"),
    **dict.fromkeys(
        ("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
        "each_property",
    ),
    **{"prefixItems": "one_item", "properties": "one_property"},
    **dict.fromkeys(("$defs", "definitions", "contentSchema"), "aside"),
}

# Keywords whose value is subschemas by name; and keywords whose value is data, which is not a
# schema even if it looks like one.
BY_NAME = frozenset(
    ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
)
DATA = frozenset(("const", "enum", "default", "examples", "example"))

_METASCHEMA = re.compile(r"https?://json-schema\.org/draft(?:/2020-12|/2019-09|-07)/")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PORT = re.compile(r":\d*$")
_NOWHERE = "json-schema:///"  # the base URI of a schema without `$id`


class SchemaError(ValueError):
    """The schema is invalid; the message says why and what to do."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class _Place:
    """One subschema: its base URI, and the subschemas that apply with it."""

    __slots__ = (
        "aside",
        "base",
        "each_item",
        "each_property",
        "here",
        "node",
        "one_item",
        "one_property",
    )

    def __init__(self, node: dict[str, Any], base: str) -> None:
        self.node = node
        self.base = base
        self.here: list[_Place] = []
        self.each_item: list[_Place] = []
        self.one_item: list[_Place] = []
        self.each_property: list[_Place] = []
        self.one_property: list[_Place] = []
        self.aside: list[_Place] = []

    def below(self) -> list[_Place]:
        """Every subschema that may apply to a part of the value that this one applies to."""
        return [*self.each_item, *self.one_item, *self.each_property, *self.one_property]

    def applied(self) -> list[_Place]:
        """Every subschema that may apply to the value, or to a part of it, when this one does."""
        return [*self.here, *self.below()]

    def cost(self, here: Mapping[_Place, int], inner: Mapping[_Place, int], unknown: int) -> int:
        """Return the number of subschemas that apply on one path, given those of the subschemas
        below this one.

        A path enters an item or a property. Of the subschemas for a single item or property it
        meets only one.
        """
        total = 1 + sum(here.get(place, unknown) for place in self.here)
        most = 0
        for each, one in ((self.each_item, self.one_item), (self.each_property, self.one_property)):
            met = sum(inner.get(place, unknown) for place in each)
            most = max(most, met + max((inner.get(place, unknown) for place in one), default=0))
        return min(total + most, MAX_WEIGHT + 1)


class Survey:
    """Analyzes a whole schema, a JSON tree without shared parts.

    Raises SchemaError if the schema cannot be used.

    Attributes:
        dialect: The name of the root's dialect.
        patterns: The values of `pattern`.
        name_patterns: The names in `patternProperties`.
        weight: The largest number of subschemas that may apply on one path through a value, with
            recursion counted once.
        choice: The depth inside a value at which the first `anyOf` or `oneOf` applies; None if none
            does.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self.patterns: dict[str, None] = {}
        self.name_patterns: dict[str, None] = {}
        self.dialect = _dialect(schema)
        self._count = 0
        self._places: dict[int, _Place] = {}
        # By URI, with or without an anchor. If a name is defined twice, the engine decides which
        # one applies; here all count.
        self._targets: dict[str, list[dict[str, Any]]] = {}
        self._dynamic: dict[
            str, list[_Place]
        ] = {}  # by the name of a dynamic anchor; "" for `$recursiveAnchor`
        self._references: list[tuple[_Place, str]] = []
        self._targets[_key(_NOWHERE)] = [schema]
        self._root = self._visit(schema, _NOWHERE)
        # Resolving a reference may find further subschemas, with references of their own.
        for place, keyword in self._references:
            place.here.extend(self._resolve(place, keyword))
        places, recursive = _order([self._root], _Place.applied)
        self._order, loops = _order(places, lambda place: place.here)
        if loops:
            raise SchemaError(
                "The schema refers to itself without going into the value, so that checking would"
                " never end."
            )
        self.weight = self._weigh(places)
        self.choice = self._first_choice()
        # Without recursion the longest path is finite. With recursion there is one for each level
        # of the value.
        self._height = max(_longest(self._order, lambda place: place.here).values())
        self._length = 0 if recursive else _longest(places, _Place.applied)[self._root]
        if self.stack(0) > MAX_STACK:
            raise SchemaError(
                f"More than {MAX_STACK} subschemas lead to one another in a chain; make it shorter."
            )

    def stack(self, levels: int) -> int:
        """Return the largest number of nested active subschemas on a value with `levels` levels."""
        return self._length or self._height * (levels + 1)

    def work(self, levels: int) -> int:
        """Return the largest number of subschemas that may apply on one path through a value with
        `levels` levels, with recursion counted each time.
        """
        inner: dict[_Place, int] = {}
        for _ in range(levels + 1):
            here: dict[_Place, int] = {}
            for place in self._order:
                here[place] = place.cost(here, inner, 0)
            if here == inner:
                break
            inner = here
        return inner[self._root]

    def _weigh(self, places: Iterable[_Place]) -> int:
        weights: dict[_Place, int] = {}
        for place in places:
            weights[place] = place.cost(weights, weights, 1)
        weight = weights[self._root]
        if weight > MAX_WEIGHT:
            raise SchemaError(
                f"More than {MAX_WEIGHT} subschemas apply at once to one value; use fewer"
                " alternatives and references."
            )
        return weight

    def _first_choice(self) -> int | None:
        level = [self._root]
        seen = set[_Place]()
        levels = 0
        while level:
            now, _ = _order(level, lambda place: place.here)
            now = [place for place in now if place not in seen]
            if any("anyOf" in place.node or "oneOf" in place.node for place in now):
                return levels
            seen.update(now)
            level = [inner for place in now for inner in place.below()]
            levels = levels + 1
        return None

    def _visit(self, node: dict[str, Any], base: str) -> _Place:
        first = self._place(node, base)
        stack = [first]
        while stack:
            place = stack.pop()
            for keyword, value in place.node.items():
                role = _ROLES.get(keyword)
                if role is None:
                    continue
                for child in _children(keyword, value):
                    self._count += 1
                    if self._count > MAX_SUBSCHEMAS:
                        raise SchemaError(f"The schema has more than {MAX_SUBSCHEMAS} subschemas.")
                    if isinstance(child, dict) and id(child) not in self._places:
                        stack.append(self._place(child, place.base))
                    if isinstance(child, dict):
                        getattr(place, role).append(self._places[id(child)])
        return first

    def _place(self, node: dict[str, Any], base: str) -> _Place:
        """Record a subschema: its URI, anchors, references, dialect and pattern."""
        identifier = node.get("$id")
        if isinstance(identifier, str) and not (self.dialect == "draft-07" and "$ref" in node):
            whole, _, anchor = _join(base, identifier).partition("#")
            base = base if anchor else whole  # in draft-07 this defines an anchor
            self._targets.setdefault(_key(whole, anchor), []).append(node)
        place = self._places[id(node)] = _Place(node, base)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                self._targets.setdefault(_key(base, node[keyword]), []).append(node)
        if isinstance(node.get("$dynamicAnchor"), str):
            self._dynamic.setdefault(node["$dynamicAnchor"], []).append(place)
        if node.get("$recursiveAnchor") is True:
            self._dynamic.setdefault("", []).append(place)
        self._references += [
            (place, keyword)
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef")
            if keyword in node
        ]
        if "$schema" in node:
            _dialect(node)
        if isinstance(node.get("pattern"), str):
            self.patterns[node["pattern"]] = None
        if isinstance(node.get("patternProperties"), dict):
            self.name_patterns.update(dict.fromkeys(node["patternProperties"]))
        return place

    def _resolve(self, place: _Place, keyword: str) -> list[_Place]:
        reference = place.node[keyword]
        if not isinstance(reference, str):
            raise SchemaError(f"{keyword} is a text, not {reference!r:.80}.")
        uri = _join(place.base, reference)
        resource, _, fragment = uri.partition("#")
        if fragment.startswith("/"):
            found = [
                node
                for root in self._targets.get(_key(resource), ())
                if (node := _follow(root, fragment)) is not None
            ]
        else:
            found = self._targets.get(_key(resource, fragment), [])
        if not found and _METASCHEMA.match(resource):
            return []  # the engine contains the metaschemas
        if not found:
            raise SchemaError(
                f"{keyword} {reference!r:.200} leads to nothing in the schema, and nothing"
                " outside is ever fetched: put what it means"
                ' under "$defs" and refer to it as "#/$defs/name".'
            )
        targets = [
            self._places.get(id(node)) or self._visit(node, resource)
            for node in found
            if isinstance(node, dict)
        ]
        if keyword == "$ref":
            return targets
        # A dynamic reference depends on the evaluation path, so all anchors of that name count.
        dynamic = (
            self._dynamic.get(fragment, []) if keyword == "$dynamicRef" or not fragment else []
        )
        return [*targets, *(other for other in dynamic if other not in targets)]


_SCALARS = frozenset({str, int, float, bool, type(None)})


def inside(level: Iterable[Any]) -> list[Any]:
    """Return the values directly inside the objects and lists among some JSON values."""
    level = list(level)
    kinds = {*map(type, level)}
    # Most levels of large values have one kind: rows of a table, or their fields.
    if kinds <= _SCALARS:
        return []
    if kinds == {dict}:
        return list(chain.from_iterable(map(dict.values, level)))
    if kinds == {list}:
        return list(chain.from_iterable(level))
    containers = (outer for outer in level if isinstance(outer, dict | list | tuple))
    return [
        inner
        for outer in containers
        for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]


def depth(value: Any) -> int:
    """Return the nesting depth of a JSON value, computed without recursion; at most MAX_DEPTH +
    1.
    """
    level = [value]
    levels = 0
    while levels <= MAX_DEPTH and (level := inside(level)):
        levels += 1
    return levels


def _dialect(node: Mapping[str, Any]) -> str:
    """Return the name of the dialect that a schema declares, and replace the declaration by the
    form that the engine expects.
    """
    declared = node.get("$schema", DIALECTS["2020-12"])
    wanted = (
        re.sub(r"^https?:", "", declared).removesuffix("#")
        if isinstance(declared, str)
        else declared
    )
    for name, uri in DIALECTS.items():
        if re.sub(r"^https?:", "", uri).removesuffix("#") == wanted:
            if "$schema" in node and isinstance(node, dict):
                node["$schema"] = uri
            return name
    raise SchemaError(
        f"The dialect {declared!r:.200} is not supported; $schema may be"
        f" {', '.join(DIALECTS.values())}, or missing."
    )


def _children(keyword: str, value: Any) -> list[Any]:
    if keyword in BY_NAME:
        value = list(value.values()) if isinstance(value, dict) else []
    elif not isinstance(value, list):
        value = [value]
    return [child for child in value if isinstance(child, dict | bool)]


def _order(
    starts: Iterable[_Place], edges: Callable[[_Place], list[_Place]]
) -> tuple[list[_Place], bool]:
    """Return every subschema that can be reached along the edges, each after those it leads to, and
    whether there is a cycle.
    """
    done: dict[_Place, bool] = {}
    order: list[_Place] = []
    looped = False
    stack = list(starts)
    while stack:
        place = stack[-1]
        if place not in done:
            done[place] = False
            for inner in edges(place):
                if inner not in done:
                    stack.append(inner)
                looped = looped or done.get(inner) is False
            continue
        stack.pop()
        if not done[place]:
            done[place] = True
            order.append(place)
    return order, looped


def _longest(order: Iterable[_Place], edges: Callable[[_Place], list[_Place]]) -> dict[_Place, int]:
    """Return for each subschema the length of the longest path from it. In `order` each subschema
    comes after those it leads to.
    """
    lengths: dict[_Place, int] = {}
    for place in order:
        lengths[place] = 1 + max((lengths[inner] for inner in edges(place)), default=0)
    return lengths


def _join(base: str, reference: str) -> str:
    """Resolve a reference against a base URI of any scheme (RFC 3986, section 5)."""
    from urllib.parse import (
        urljoin,
    )  # imported late: it is slow, and most schemas have no references

    if reference.startswith("#") or not reference:
        return base + reference
    if _SCHEME.match(reference):
        return reference
    scheme, _, rest = base.partition(":")
    # `urljoin` supports only known schemes. A scheme without a hierarchy (urn:) has nothing to
    # join.
    try:
        return (
            scheme + urljoin("http:" + rest, reference).removeprefix("http")
            if rest.startswith("/")
            else reference
        )
    except ValueError:
        return reference  # malformed; the engine reports the error


def _key(uri: str, anchor: str = "") -> str:
    """Return a name that is the same for all spellings of a URI that the engine may consider equal,
    and for a few more.
    """
    from urllib.parse import unquote  # late, as above

    scheme, _, rest = unquote(uri).partition(":")
    host, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    return (
        f"{scheme.lower()}://{_PORT.sub('', host.lower())}{posixpath.normpath('/' + path)}#{anchor}"
    )


def _follow(node: Any, pointer: str) -> Any:
    """Return the target of a JSON pointer, the fragment of a URI; None if there is none."""
    from urllib.parse import unquote  # late, as above

    for token in unquote(pointer).split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(token)
        elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            return None
    return node
