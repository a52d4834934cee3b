"""Redaction of URLs: a URL as an error message may show it."""

from __future__ import annotations

import re


def url_without_secrets(url: str) -> str:
    """Return a URL without its user, password and query."""
    return re.sub(r"//[^/?#]*@", "//", url).partition("?")[0]
