"""Pins: what each server offered when the person approved it, so that a later change is noticed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.types import Prompt, Tool
from interlock.untrusted.invisible import visible

from .pin_file import BadPins, PinFile, digest_of_form

__all__ = ["BadPins", "PinDifference", "ServerFeatures", "Pins", "digest_of", "unified"]

Kind = Literal["tool", "prompt", "instructions"]
How = Literal["changed", "added", "gone"]

_WORDS = {
    "changed": "It has changed since it was approved.",
    "added": "It was added after this server was approved.",
}


class ServerFeatures(Struct, frozen=True, kw_only=True):
    """The features of a server that a model or a person reads."""

    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    instructions: str | None = None


class PinDifference(Struct, frozen=True, kw_only=True, rename="camel"):
    """A feature that differs from its approved form.

    `was` and `now` are lines of JSON for display, empty if there is none. `name` is empty for the
    instructions. `digest` is that of the current form; empty if the feature is gone.
    """

    kind: Kind
    name: str
    how: How
    was: str
    now: str
    digest: str


class Pins:
    """The approved features of all servers; see `PinFile` for the file.

    Without a path they are kept in memory. The blocked features are the differences found by the
    last `seen` of a server, without those approved since.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = PinFile(path)
        self._now: dict[str, dict[tuple[Kind, str], Any]] = {}

    def known(self, server: str) -> bool:
        """Whether features of this server were approved before. Raises BadPins."""
        return "features" in self._server(server)

    def seen(self, server: str, features: ServerFeatures) -> list[PinDifference]:
        """Record what a server offers now, and return the differences to what was approved.

        They are in the order of the server. Raises BadPins.

        For an unknown server every feature is `added`.
        """
        self._now[server] = dict(_canonical(features))
        return self._differences(server)

    def first(self, server: str, features: ServerFeatures) -> list[PinDifference]:
        """Approve all features of a server that is seen for the first time. Raises BadPins.

        If another host was first, its approval stands, and the differences to it are returned.
        """
        self._now[server] = now = dict(_canonical(features))

        def change(pins: dict[str, Any]) -> None:
            entry = pins["servers"].setdefault(server, {})
            if "features" not in entry:
                kept: dict[str, dict[str, Any]] = {"tool": {}, "prompt": {}, "instructions": {}}
                entry["features"] = kept
                for (kind, name), form in now.items():
                    kept[kind][name] = {"digest": digest_of_form(form), "form": form}

        self._file.edit(change)
        return self._differences(server)

    def approve(self, server: str, difference: PinDifference) -> bool:
        """Approve one difference; return whether it is approved now. Raises BadPins."""
        return bool(self.approve_all(server, [difference]))

    def approve_all(self, server: str, differences: Sequence[PinDifference]) -> list[PinDifference]:
        """Approve differences in one write.

        Only what was shown is approved: if `seen` has found another change since, the feature stays
        blocked.

        Returns:
            The differences that are approved now.

        Raises:
            BadPins: The file cannot be read or written.
        """
        now = self._now.get(server, {})
        forms = {(each.kind, each.name): now.get((each.kind, each.name)) for each in differences}
        approved = [
            each
            for each in differences
            if _digest_or_none(forms[each.kind, each.name]) == each.digest
        ]
        if not approved:
            return []

        def change(pins: dict[str, Any]) -> None:
            entry = pins["servers"].setdefault(server, {})
            kept = entry.setdefault("features", {"tool": {}, "prompt": {}, "instructions": {}})
            for each in approved:
                form = forms[each.kind, each.name]
                if form is None:
                    kept[each.kind].pop(each.name, None)
                else:
                    kept[each.kind][each.name] = {"digest": each.digest, "form": form}

        self._file.edit(change)
        return approved

    def blocked(self, server: str) -> dict[tuple[Kind, str], str]:
        """The blocked features of a server, with the reason for each. Raises BadPins."""
        return {
            (each.kind, each.name): _WORDS[each.how]
            for each in self._differences(server)
            if each.how != "gone"
        }

    def forget(self, server: str) -> None:
        """Forget a server; when it is seen next, it counts as new. Raises BadPins."""
        self._file.edit(lambda pins: pins["servers"].pop(server, None))

    def approved_command(self, server: str, digest: str) -> bool:
        """Whether this command or address of a server was approved; `digest` is any text for it.

        Raises BadPins.
        """
        return bool(digest) and self._server(server).get("command") == digest

    def approve_command(self, server: str, digest: str) -> None:
        """Approve the command of a server (`SEC-17`). Raises BadPins."""

        def change(pins: dict[str, Any]) -> None:
            pins["servers"].setdefault(server, {})["command"] = digest

        self._file.edit(change)

    def approved_skill(self, server: str, uri: str) -> Any:
        """The approved form of a skill: its frontmatter, and every file with its digest.

        Returns:
            The form, or None for a skill that was never approved.

        Raises:
            BadPins: The file cannot be read.
        """
        pinned = self._server(server).get("skills", {}).get(uri)
        return None if pinned is None else pinned["form"]

    def approve_skill(self, server: str, uri: str, form: Mapping[str, Any]) -> None:
        """Approve a skill as it is now, in place of its earlier form.

        Raises:
            BadPins: The file cannot be read or written.
        """
        pinned = {"digest": digest_of_form(form), "form": form}

        def change(pins: dict[str, Any]) -> None:
            entry = pins["servers"].setdefault(server, {})
            entry.setdefault("skills", {})[uri] = pinned

        self._file.edit(change)

    def _server(self, server: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._file.read()["servers"].get(server, {})
        return found

    def _differences(self, server: str) -> list[PinDifference]:
        kept = self._server(server).get("features", {})
        now = self._now.get(server, {})
        found: list[PinDifference] = []
        for (kind, name), form in now.items():
            pinned = kept.get(kind, {}).get(name)
            digest = digest_of_form(form)
            if pinned is None:
                found.append(_difference(kind, name, "added", None, form, digest))
            elif pinned["digest"] != digest:
                found.append(_difference(kind, name, "changed", pinned["form"], form, digest))
        if server in self._now:
            for kind in ("tool", "prompt", "instructions"):
                gone = (
                    (name, pinned)
                    for name, pinned in kept.get(kind, {}).items()
                    if (kind, name) not in now
                )
                found += [
                    _difference(kind, name, "gone", pinned["form"], None, "")
                    for name, pinned in gone
                ]
        return found


def _digest_or_none(form: Any) -> str:
    """The digest of a form; empty without a form."""
    return "" if form is None else digest_of_form(form)


def digest_of(feature: Tool | Prompt) -> str:
    """The digest of all that a model or a person reads of a feature, independent of key order."""
    return digest_of_form(_tool(feature) if isinstance(feature, Tool) else _prompt(feature))


def unified(difference: PinDifference, *, context: int = 3) -> str:
    """A unified diff of a difference, with invisible characters made visible."""
    what = difference.name or difference.kind
    lines = difflib.unified_diff(
        _lines(difference.was),
        _lines(difference.now),
        f"{what} (approved)",
        f"{what} (now)",
        n=context,
        lineterm="",
    )
    return visible("\n".join(lines))


def _lines(shown: str) -> list[str]:
    """Split texts at their line breaks: an addition to a long description would be lost in one
    line.
    """
    return shown.replace("\\n", "\\n\n      ").splitlines()


def _difference(kind: Kind, name: str, how: How, was: Any, now: Any, digest: str) -> PinDifference:
    return PinDifference(
        kind=kind, name=name, how=how, was=_shown(was), now=_shown(now), digest=digest
    )


def _shown(form: Any) -> str:
    return (
        ""
        if form is None
        else visible(json.dumps(form, indent=2, ensure_ascii=False, sort_keys=True))
    )


# -- canonical forms -------------------------------------------------------------------------------


def _canonical(features: ServerFeatures) -> Iterator[tuple[tuple[Kind, str], Any]]:
    for tool in features.tools:
        yield ("tool", _text(tool.name)), _tool(tool)
    for prompt in features.prompts:
        yield ("prompt", _text(prompt.name)), _prompt(prompt)
    if features.instructions:
        yield ("instructions", ""), _text(features.instructions)


def _tool(tool: Tool) -> dict[str, Any]:
    form = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": msgspec.to_builtins(tool.annotations),
        "_meta": _interface(tool.meta),
    }
    return _form(form)


def _prompt(prompt: Prompt) -> dict[str, Any]:
    arguments = [
        {
            "name": each.name,
            "title": each.title,
            "description": each.description,
            "required": bool(each.required),
        }
        for each in prompt.arguments or ()
    ]
    return _form(
        {
            "name": prompt.name,
            "title": prompt.title,
            "description": prompt.description,
            "arguments": [_form(each) for each in arguments],
            "_meta": _interface(prompt.meta),
        }
    )


def _interface(meta: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The part of `_meta` that decides which page is shown for a tool."""
    return {
        key: value for key, value in (meta or {}).items() if key == "ui" or key.startswith("ui/")
    } or None


def _form(form: dict[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in form.items() if value is not None}


def _plain(value: Any, key: str = "") -> Any:
    """JSON that is the same for equivalent spellings.

    1.0 becomes 1, and required names are sorted.
    """
    if isinstance(value, Mapping):
        return {_text(str(name)): _plain(each, str(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        if key == "required" and all(isinstance(each, str) for each in value):
            return sorted(value)
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def _text(text: str) -> str:
    """Replace lone surrogates, which no file can contain, by question marks."""
    return text.encode("utf-8", "replace").decode()
