"""The comparison of two servers, or of one server under two revisions: their catalogues."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.testing import Catalogue, compare_catalogues
from interlock.types import JSONObject


def comparison_state(one: Catalogue, other: Catalogue) -> JSONObject:
    """The differences of two catalogues as JSON values: the changes, and the features that differ
    with the text of both versions.
    """
    changes = compare_catalogues(one, other).changes
    changed = {(change.kind, change.name) for change in changes}
    return {
        "changes": [
            {
                "kind": change.kind,
                "name": change.name,
                "breaks": change.breaks,
                "words": change.words,
            }
            for change in changes
        ],
        "features": [
            {
                "kind": kind,
                "name": name,
                "one": _text(one.get(f"{kind}s", {}).get(name)),
                "other": _text(other.get(f"{kind}s", {}).get(name)),
            }
            for kind, name in sorted(changed)
        ],
        "equal": sum(
            1
            for kind, features in one.items()
            for name in features
            if (kind.removesuffix("s"), name) not in changed
        ),
    }


def _text(feature: Any) -> str:
    """A feature as indented JSON; "" if there is none."""
    if feature is None:
        return ""
    return msgspec.json.format(msgspec.json.encode(feature), indent=2).decode()
