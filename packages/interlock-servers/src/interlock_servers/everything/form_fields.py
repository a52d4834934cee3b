"""Each kind of field of an elicitation form (2026-07-28, "Elicitation")."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    """Choices, each with its display title."""
    return [{"const": value, "title": title} for value, title in pairs]


SIZES = titled(("s", "Small"), ("m", "Medium"), ("l", "Large"))

TEXTS: Schema = {
    "name": {
        "type": "string",
        "title": "Name",
        "description": "As others call you.",
        "minLength": 1,
        "maxLength": 40,
        "default": "Guest",
    },
    "email": {
        "type": "string",
        "title": "Mail address",
        "format": "email",
        "default": "guest@example.com",
    },
    "page": {
        "type": "string",
        "title": "Home page",
        "format": "uri",
        "default": "https://example.com",
    },
    "day": {"type": "string", "title": "Day", "format": "date", "default": "2026-07-28"},
    "moment": {
        "type": "string",
        "title": "Moment",
        "format": "date-time",
        "default": "2026-07-28T09:00:00Z",
    },
}
NUMBERS: Schema = {
    "age": {
        "type": "integer",
        "title": "Age",
        "description": "In years.",
        "minimum": 0,
        "maximum": 150,
        "default": 42,
    },
    "height": {
        "type": "number",
        "title": "Height",
        "description": "In metres.",
        "minimum": 0.3,
        "maximum": 2.8,
        "default": 1.7,
    },
}
SWITCHES: Schema = {
    "news": {
        "type": "boolean",
        "title": "News",
        "description": "Whether you want any.",
        "default": True,
    }
}
CHOICES: Schema = {
    "colour": {
        "type": "string",
        "title": "Colour",
        "enum": ["red", "green", "blue"],
        "default": "green",
    },
    "size": {"type": "string", "title": "Size", "oneOf": SIZES, "default": "m"},
    "old": {
        "type": "string",
        "title": "Size, as older clients have it",
        "enum": ["s", "m"],
        "enumNames": ["Small", "Medium"],
        "default": "s",
    },
}
SEVERAL: Schema = {
    "toppings": {
        "type": "array",
        "title": "Toppings",
        "description": "One or two.",
        "items": {"type": "string", "enum": ["cheese", "olives", "onions"]},
        "minItems": 1,
        "maxItems": 2,
        "default": ["cheese"],
    },
    "sizes": {
        "type": "array",
        "title": "Sizes",
        "items": {"anyOf": SIZES},
        "minItems": 0,
        "maxItems": 3,
        "default": ["s", "l"],
    },
}

PARTS: dict[str, Schema] = {
    "texts": TEXTS,
    "numbers": NUMBERS,
    "switches": SWITCHES,
    "choices": CHOICES,
    "several": SEVERAL,
}
"""The fields by kind. `several` allows more than one choice and exists since 2025-11-25."""


def form_of(part: str, *, several: bool) -> Schema:
    """The form with one kind of field, or with "all"; only the first field of each kind can be
    required.
    """
    chosen = PARTS if part == "all" else {part: PARTS[part]}
    fields = {
        name: field
        for kind, fields in chosen.items()
        if several or kind != "several"
        for name, field in fields.items()
    }
    return {"type": "object", "properties": fields, "required": list(fields)[:1]}
