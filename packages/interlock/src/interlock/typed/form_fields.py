"""Form fields of an elicitation request: read from its schema, and answers read and checked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct

from ..schema import SchemaError, compile

MAX_FIELDS = 100  # of one form; a user interface has to show all of them
MAX_OPTIONS = 1_000  # of one choice

Kind = Literal["text", "number", "integer", "boolean", "choice", "choices"]
FORMATS = ("email", "uri", "date", "date-time")

_KINDS: dict[str, Kind] = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
}
_YES = frozenset({"y", "yes", "true", "on", "1"})
_NO = frozenset({"n", "no", "false", "off", "0"})
_EXAMPLES = {
    "email": "name@example.com",
    "uri": "https://example.com/",
    "date": "2026-12-31",
    "date-time": "2026-12-31T18:30:00Z",
}
_FORMAT_WORDS = {
    "email": "an e-mail address",
    "uri": "an address of the web",
    "date": "a date",
    "date-time": "a date with time and zone",
}


class BadForm(ValueError):
    """The schema is not valid for a form; the message says where."""


class BadValue(ValueError):
    """The input is not a value of the field; the message says what would be."""


class FormField(Struct, frozen=True, kw_only=True, rename="camel"):
    """One field of a form, in the order of the form (2026-07-28, "Elicitation", "Requested
    Schema").

    Attributes:
        name: The name of the field in the answer.
        title: The title for people.
        description: The description for people.
        kind: The kind of the value.
        required: Whether the field must have a value.
        default: The default value; UNSET if there is none, or if it does not fit.
        format: One of FORMATS or "".
        pattern: A regular expression for texts.
        least: The lower bound of a number, of the length of a text in characters, or of the number
            of choices.
        most: The upper bound of the same.
        options: The values of a choice with their titles.
        node: The field's own schema, as the server sent it.
    """

    name: str
    title: str
    description: str = ""
    kind: Kind = "text"
    required: bool = False
    default: Any = UNSET
    format: str = ""
    pattern: str = ""
    least: float | int | None = None
    most: float | int | None = None
    options: tuple[tuple[str, str], ...] = ()
    node: dict[str, Any] = {}


def form_fields(requested_schema: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields of a form, in order.

    Raises BadForm if the schema is not a flat object of primitives (`ELI-06`, `ELI-10`).
    """
    if requested_schema.get("type", "object") != "object":
        raise BadForm("The schema of a form is an object's.")
    properties = requested_schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise BadForm("The `properties` of a form are an object.")
    if len(properties) > MAX_FIELDS:
        raise BadForm(f"The form has {len(properties)} fields; {MAX_FIELDS} are allowed.")
    required = requested_schema.get("required")
    needed = (
        {name for name in required if isinstance(name, str)}
        if isinstance(required, list)
        else set()
    )
    if missing := sorted(needed - properties.keys()):
        raise BadForm(f"The form requires {missing[0]!r}, which is not one of its fields.")
    return tuple(_field(name, node, name in needed) for name, node in properties.items())


def defaults(form: Sequence[FormField]) -> dict[str, Any]:
    """The initial values of the form (`ELI-12`)."""
    return {field.name: field.default for field in form if field.default is not UNSET}


def check(requested_schema: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, str]:
    """Check an answer: an error for each invalid field by name; empty if the answer may be sent
    (`ELI-34`).

    Raises BadForm.
    """
    form = form_fields(requested_schema)
    known = {field.name for field in form}
    wrong = {name: "The form has no such field." for name in content if name not in known}
    for field in form:
        if field.name not in content:
            if field.required:
                wrong[field.name] = "This field is required."
        elif words := misfit(field, content[field.name]):
            wrong[field.name] = words
    return wrong


def misfit(field: FormField, value: Any) -> str:
    """The error of one value, in a sentence that says what is valid; empty if the value is
    valid.
    """
    if compile(field.node).is_valid(value) and _of_kind(field, value):
        return ""
    if not _of_kind(field, value):
        return f"This must be {_wanted(field)}."
    if field.kind in ("choice", "choices"):
        allowed = {option for option, _ in field.options}
        strangers = [
            each for each in ([value] if field.kind == "choice" else value) if each not in allowed
        ]
        if strangers:
            return f"{strangers[0]!r} is not one of the choices: {_listed(field)}."
    if words := _out_of_bounds(field, value):
        return words
    if field.format in FORMATS:
        return f"This must be {_FORMAT_WORDS[field.format]}, such as {_EXAMPLES[field.format]}."
    if field.pattern:
        return f"This must match the pattern {field.pattern}"
    return f"This does not fit: {compile(field.node).check(value)[0].message}."


def read_value(field: FormField, text: str) -> Any:
    """Parse the input for a field.

    Numbers are read as in JSON, booleans from the usual words for yes and no. A choice is given by
    its value, its title, or its position in the list from 1, if no value has that name. Several
    choices are separated by commas, or are a JSON list.

    Raises BadValue, which says what is expected.
    """
    stripped = text.strip()
    value: Any = text
    if field.kind == "boolean":
        value = _yes_or_no(stripped)
    elif field.kind in ("number", "integer"):
        value = _number(field, stripped)
    elif field.kind == "choice":
        value = _option(field, stripped)
    elif field.kind == "choices":
        value = _options(field, stripped)
    if words := misfit(field, value):
        raise BadValue(words)
    return value


def remark(field: FormField) -> str:
    """Describe the accepted values of a field, for the line next to it."""
    parts = [field.description] if field.description else []
    if field.options:
        parts.append(
            ("several values, separated by commas: " if field.kind == "choices" else "one of ")
            + _listed(field)
        )
    elif field.format in FORMATS:
        parts.append(_FORMAT_WORDS[field.format])
    elif field.kind != "text":
        parts.append(
            {"integer": "a whole number", "number": "a number", "boolean": "yes or no"}[field.kind]
        )
    if bounds := _bounds(field):
        parts.append(bounds)
    if not field.required:
        parts.append("may be left empty")
    return "; ".join(parts)


# -- from the schema -------------------------------------------------------------------------------


def _field(name: str, node: Any, required: bool) -> FormField:
    if not isinstance(node, Mapping):
        raise BadForm(f"The field {name!r} has no schema that is an object.")
    node = dict(node)
    kind, options = _kind(name, node)
    try:
        compile(node)
    except SchemaError as bad:
        raise BadForm(f"The schema of the field {name!r} cannot be used: {bad}") from None
    low, high = {"text": ("minLength", "maxLength"), "choices": ("minItems", "maxItems")}.get(
        kind, ("minimum", "maximum")
    )
    field = FormField(
        name=name,
        title=_text(node, "title") or name,
        description=_text(node, "description"),
        kind=kind,
        required=required,
        format=_text(node, "format") if _text(node, "format") in FORMATS and kind == "text" else "",
        pattern=_text(node, "pattern") if kind == "text" else "",
        least=_bound(node, low),
        most=_bound(node, high),
        options=options,
        node=node,
    )
    if "default" not in node or misfit(field, node["default"]):
        return field
    return FormField(
        **{each: getattr(field, each) for each in field.__struct_fields__ if each != "default"},
        default=node["default"],
    )


def _kind(name: str, node: dict[str, Any]) -> tuple[Kind, tuple[tuple[str, str], ...]]:
    """The kind of a field and its options, in any of the forms of the revisions (`ELI-09`,
    `ELI-10`).
    """
    if node.get("type") == "array":
        items = node.get("items")
        options = _choices(name, items) if isinstance(items, Mapping) else ()
        if not options:
            raise BadForm(
                f"The field {name!r} is a list, "
                "but none of choices (`items` with `enum` or `anyOf`)."
            )
        return "choices", options
    if "enum" in node or "oneOf" in node or "anyOf" in node:
        return "choice", _choices(name, node)
    kind = _KINDS.get(node["type"]) if isinstance(node.get("type"), str) else None
    if kind is None:
        raise BadForm(
            f"The field {name!r} is of type {json.dumps(node.get('type'))}: fields are texts, "
            "numbers, yes or no, and choices."
        )
    return kind, ()


def _choices(name: str, node: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[Any, Any]]
    if isinstance(node.get("enum"), list):
        names = node.get("enumNames")
        titles = (
            names if isinstance(names, list) and len(names) == len(node["enum"]) else node["enum"]
        )
        pairs = list(zip(node["enum"], titles, strict=True))
    else:
        listed = node.get("oneOf") or node.get("anyOf")
        each = (
            [option for option in listed if isinstance(option, Mapping) and "const" in option]
            if isinstance(listed, list)
            else []
        )
        if isinstance(listed, list) and len(each) != len(listed):
            raise BadForm(f"A choice of the field {name!r} has no `const`.")
        pairs = [(option["const"], option.get("title", option["const"])) for option in each]
    if not pairs or len(pairs) > MAX_OPTIONS:
        raise BadForm(
            f"The field {name!r} has {len(pairs)} choices; it must have 1 to {MAX_OPTIONS}."
        )
    if not all(isinstance(value, str) for value, _ in pairs):
        raise BadForm(f"A choice of the field {name!r} is not text.")
    return tuple(
        (value, title if isinstance(title, str) and title else value) for value, title in pairs
    )


def _text(node: Mapping[str, Any], key: str) -> str:
    value = node.get(key)
    return value if isinstance(value, str) else ""


def _bound(node: Mapping[str, Any], key: str) -> float | int | None:
    value = node.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


# -- values and words ------------------------------------------------------------------------------


def _of_kind(field: FormField, value: Any) -> bool:
    if field.kind == "boolean":
        return isinstance(value, bool)
    if field.kind in ("number", "integer"):
        number = (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
        return number and (field.kind == "number" or value == int(value))
    if field.kind == "choices":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str)


def _wanted(field: FormField) -> str:
    if field.kind in ("choice", "choices"):
        return f"{'some' if field.kind == 'choices' else 'one'} of the choices: {_listed(field)}"
    return {"boolean": "yes or no", "number": "a number", "integer": "a whole number"}.get(
        field.kind, "a text"
    )


def _listed(field: FormField) -> str:
    return ", ".join(
        value if value == title else f"{value} ({title})" for value, title in field.options
    )


def _bounds(field: FormField) -> str:
    unit = {"text": " characters", "choices": " of them"}.get(field.kind, "")
    low = field.least
    high = field.most
    if low is not None and high is not None:
        return f"from {low} to {high}{unit}"
    if low is not None:
        return f"at least {low}{unit}"
    if high is not None:
        return f"at most {high}{unit}"
    return ""


def _out_of_bounds(field: FormField, value: Any) -> str:
    if field.kind in ("text", "choices"):
        size = len(value)
    elif field.kind in ("number", "integer"):
        size = value
    else:
        size = None
    if size is None:
        return ""
    out = (field.least is not None and size < field.least) or (
        field.most is not None and size > field.most
    )
    if out and field.kind in ("text", "choices"):
        return f"This must have {_bounds(field)}."
    if out:
        return f"This must be {_bounds(field)}."
    return ""


def _yes_or_no(text: str) -> bool:
    if text.lower() in _YES | _NO:
        return text.lower() in _YES
    raise BadValue("Please answer yes or no.")


def _number(field: FormField, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (field.kind == "integer" and number != int(number)):
        raise BadValue(f"This must be {_wanted(field)}.")
    return int(number) if field.kind == "integer" else number


def _option(field: FormField, text: str) -> str:
    values = [value for value, _ in field.options]
    if text in values:
        return text
    titled = [value for value, title in field.options if title.casefold() == text.casefold()]
    alike = titled or [value for value in values if value.casefold() == text.casefold()]
    if len(alike) == 1:
        return alike[0]
    if text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= len(values):
        return values[int(text) - 1]
    raise BadValue(f"{text!r} is not one of the choices: {_listed(field)}.")


def _options(field: FormField, text: str) -> list[str]:
    if text in {value for value, _ in field.options}:
        return [text]
    if text.startswith("["):
        try:
            listed = json.loads(text)
        except ValueError:
            listed = None
        if isinstance(listed, list):
            return [_option(field, str(each)) for each in listed]
    chosen = [_option(field, part.strip()) for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(chosen))
