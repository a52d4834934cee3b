"""Redaction: keeps secrets out of everything that is shown, logged or raised.

`Redactor` takes known secrets, and whatever has the shape of a key, out of texts, JSON and errors.
`SecretRecord` is a record that prints none of its secrets. `url_without_secrets` is a URL for an
error message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .records import SecretRecord
    from .text import (
        DOTS,
        HARMLESS,
        Hides,
        Redact,
        Redactor,
        is_secret_word,
        is_secretive,
        may_have_keys,
        redacted,
        secrets_in,
        secrets_in_command,
        secrets_in_url,
        shown_arguments,
        shown_value,
        without_keys,
    )
    from .urls import url_without_secrets

# Loaded at first use: the patterns of `text` take milliseconds to compile.
_MODULES = {
    ".records": ("SecretRecord",),
    ".text": (
        "DOTS",
        "HARMLESS",
        "Hides",
        "Redact",
        "Redactor",
        "is_secret_word",
        "is_secretive",
        "may_have_keys",
        "redacted",
        "secrets_in",
        "secrets_in_command",
        "secrets_in_url",
        "shown_arguments",
        "shown_value",
        "without_keys",
    ),
    ".urls": ("url_without_secrets",),
}

__all__ = [
    "DOTS",
    "HARMLESS",
    "Hides",
    "Redact",
    "Redactor",
    "SecretRecord",
    "is_secret_word",
    "is_secretive",
    "may_have_keys",
    "redacted",
    "secrets_in",
    "secrets_in_command",
    "secrets_in_url",
    "shown_arguments",
    "shown_value",
    "url_without_secrets",
    "without_keys",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
