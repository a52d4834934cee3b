"""The file `interlock.lock`: the approved features of each server, in JSON for version control."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from interlock.configs import BadRecord, RecordFile

VERSION = 1

_KINDS = frozenset({"tool", "prompt", "instructions"})


class BadPins(BadRecord):
    """The pin file cannot be used; the message says what to do."""


def digest_of_form(form: Any) -> str:
    """The digest of a feature's canonical form, independent of the order of its keys."""
    text = json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class PinFile(RecordFile):
    """The pins of all servers in one file; in memory without a path."""

    error = BadPins

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, {"interlock": "pins", "version": VERSION, "servers": {}})

    def check(self, data: Any) -> str:
        """Return what is wrong with the pins in a file. Guessing could approve something."""
        if (
            not isinstance(data, dict)
            or data.get("interlock") != "pins"
            or not isinstance(data.get("servers"), dict)
        ):
            return (
                "is not a file of pins. Restore it from version control, or move it "
                "away: then every server counts as new."
            )
        if data.get("version") != VERSION or isinstance(data["version"], bool):
            return (
                f"is of version {json.dumps(data.get('version'))}; this Interlock knows version "
                f"{VERSION}. Update Interlock, or use another file."
            )
        for server, entry in data["servers"].items():
            if words := _trouble(entry):
                return (
                    f"is damaged: the entry of the server {server!r} {words}. Delete that entry; "
                    "then you are asked about the server again."
                )
        return ""


def _trouble(entry: Any) -> str:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("command", ""), str)
        or entry.keys() - {"command", "features", "skills"}
    ):
        return "was changed by hand"
    skills = entry.get("skills", {})
    if not isinstance(skills, dict):
        return "was changed by hand"
    for uri, pinned in skills.items():
        if not _is_pinned(pinned):
            return f"has a digest at skill {uri!r} that does not match its content"
    features = entry.get("features")
    if features is None:
        return ""
    if (
        not isinstance(features, dict)
        or features.keys() != _KINDS
        or not all(isinstance(kept, dict) for kept in features.values())
    ):
        return "was changed by hand"
    for kind, kept in features.items():
        for name, pinned in kept.items():
            if not _is_pinned(pinned):
                return f"has a digest at {kind} {name!r} that does not match its content"
    return ""


def _is_pinned(pinned: Any) -> bool:
    """Whether a form has its own digest beside it."""
    return (
        isinstance(pinned, dict)
        and pinned.keys() == {"digest", "form"}
        and bool(pinned["digest"] == digest_of_form(pinned["form"]))
    )
