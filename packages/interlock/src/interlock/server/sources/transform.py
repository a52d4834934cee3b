"""Tool transformation: what a mount changes of a feature of its source, with the arguments of
tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ... import types as t
from ...exchange import Middleware
from ..catalogue.features import TAGS, with_tags

_encode = msgspec.json.Encoder().encode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode
_RELATING = (
    "allOf",
    "anyOf",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "if",
    "not",
    "oneOf",
)
"""Keywords by which a schema relates its properties to each other, under their own names."""


class Transform(Struct, frozen=True, kw_only=True):
    """Changes one feature of a mounted source; the source itself stays as it is.

    The options about arguments apply to tools. They name each argument as the source does.

    Attributes:
        name: The new name of a tool or prompt, without the prefix of the mount; for a resource or
            template, its name for people.
        title: The new title.
        description: The new description.
        annotations: The new annotations of a tool.
        tags: The new tags.
        version: The new version.
        meta: Further keys of `_meta`.
        rename: New names of arguments.
        describe: New descriptions of arguments.
        defaults: Values of arguments that the caller does not give.
        fix: Values of arguments that the caller can neither see nor change.
        hide: Arguments that the caller can neither see nor give. The source uses its defaults.
        around: Middleware around each request for the feature. It gets the exchange as the source
            will see it.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    annotations: t.ToolAnnotations | None = None
    tags: Sequence[str] | None = None
    version: str | None = None
    meta: Mapping[str, Any] = {}
    rename: Mapping[str, str] = {}
    describe: Mapping[str, str] = {}
    defaults: Mapping[str, Any] = {}
    fix: Mapping[str, Any] = {}
    hide: Sequence[str] = ()
    around: Middleware | None = None

    @property
    def changes_arguments(self) -> bool:
        """Whether it changes any argument."""
        return bool(self.rename or self.describe or self.defaults or self.fix or self.hide)


class ArgumentChanges:
    """Turns the arguments of a caller into those that the source expects.

    Args:
        transform: The changes.
        schema: The input schema of the source.

    Raises:
        ValueError: The schema has no such argument, or an argument cannot be changed in this way.
    """

    def __init__(self, transform: Transform, schema: t.JSONObject) -> None:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        _check_names(transform, properties)
        gone = {*transform.fix, *transform.hide}
        required = [str(name) for name in schema.get("required") or ()]
        for name in transform.hide:
            if name in required and name not in transform.fix:
                raise ValueError(
                    f"the argument {name!r} is required, so it cannot be hidden; give it a value"
                    " with fix="
                )
        if gone or transform.rename:
            for keyword in _RELATING:
                if keyword in schema:
                    raise ValueError(
                        f"its schema relates arguments to each other ({keyword}), so none of them"
                        " can be renamed, fixed or hidden"
                    )
        self._own_names: dict[str, str] = {}  # by the names for the caller
        for own in properties:
            if own in gone:
                continue
            shown = transform.rename.get(own, own)
            if shown in self._own_names:
                raise ValueError(f"two arguments would have the name {shown!r}")
            self._own_names[shown] = own
        self._refused = frozenset(properties) - self._own_names.keys()
        self._fixed = {name: Raw(_encode(value)) for name, value in transform.fix.items()}
        self._defaults = {name: Raw(_encode(value)) for name, value in transform.defaults.items()}
        self.schema = self._shown(transform, schema, properties, required)

    def _shown(
        self,
        transform: Transform,
        schema: t.JSONObject,
        properties: Mapping[str, Any],
        required: Sequence[str],
    ) -> t.JSONObject:
        """Return the schema for the caller."""
        shown_properties: dict[str, Any] = {}
        still_required: list[str] = []
        for shown, own in self._own_names.items():
            given = properties[own]
            described = dict(given) if isinstance(given, dict) else {}
            if own in transform.describe:
                described["description"] = transform.describe[own]
            if own in transform.defaults:
                described["default"] = transform.defaults[own]
            is_changed = own in transform.describe or own in transform.defaults
            shown_properties[shown] = described if is_changed else given
            if own in required and own not in transform.defaults:
                still_required.append(shown)
        made = {**schema, "properties": shown_properties, "required": still_required}
        if not still_required:
            del made["required"]
        return made

    def apply(self, arguments: Raw) -> Raw:
        """Return the arguments for the source.

        Raises:
            ValueError: They are not an object, or the caller gave an argument that it does not
                have.
        """
        try:
            given = _read_members(arguments)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ValueError("the arguments are not a JSON object") from None
        made = dict(self._defaults)
        for name, value in given.items():
            own = self._own_names.get(name)
            if own is None:
                if name in self._refused:
                    raise ValueError(f"$.{name}: not an argument of this tool")
                own = name
            made[own] = value
        made.update(self._fixed)
        return Raw(_encode(made))


def _check_names(transform: Transform, properties: Mapping[str, Any]) -> None:
    """Raise ValueError if the schema lacks an argument that a transform names."""
    named = {
        "rename": transform.rename,
        "describe": transform.describe,
        "defaults": transform.defaults,
        "fix": transform.fix,
        "hide": transform.hide,
    }
    if isinstance(transform.hide, str):
        raise ValueError(f"hide= is a list of names: hide=[{transform.hide!r}]")
    for option, names in named.items():
        for name in names:
            if name not in properties:
                there = ", ".join(properties) or "none"
                raise ValueError(f"{option}= names {name!r}; its arguments are: {there}")


def transformed(listing: Any, transform: Transform, name: str) -> Any:
    """Return the listing of a feature with its texts, annotations, tags and `_meta` changed.

    Args:
        listing: The listing.
        transform: The changes.
        name: The name for the caller.

    Raises:
        ValueError: The changes do not suit the kind of feature, or a key of `_meta` is malformed.
    """
    changes: dict[str, Any] = {"name": name}
    if transform.title is not None:
        changes["title"] = transform.title
    if transform.description is not None:
        changes["description"] = transform.description
    if not isinstance(listing, t.Tool):
        if transform.changes_arguments or transform.annotations is not None:
            raise ValueError("only tools have arguments and annotations that can be changed")
    elif transform.annotations is not None:
        changes["annotations"] = transform.annotations
    if transform.meta or transform.tags is not None or transform.version is not None:
        meta = {**(listing.meta or {}), **transform.meta}
        if transform.tags is not None:
            meta.pop(TAGS, None)
        changes["meta"] = with_tags(meta, transform.tags, transform.version) or None
    return replace(listing, **changes)
