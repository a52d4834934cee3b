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
    "changed": "It is not as it was when it was approved.",
    "added": "It was added after this server was approved.",
}


class ServerFeatures(Struct, frozen=True, kw_only=True):
    """What a server offers, as far as a model or a person reads it."""

    tools: Sequence[Tool] = ()
    prompts: Sequence[Prompt] = ()
    instructions: str | None = None


class PinDifference(Struct, frozen=True, kw_only=True, rename="camel"):
    """A feature that is not what was approved.

    `was` and `now` are lines of JSON to be shown, empty where there was or is nothing.

    `name` is empty for the instructions. `digest` is that of what is there now; empty where it has
    gone.
    """

    kind: Kind
    name: str
    how: How
    was: str
    now: str
    digest: str


class Pins:
    """The approved features of all servers; see `PinFile` for the file.

    Without a path they last as long as this object.

    What is blocked is what the last `seen` of a server found, less what was approved since.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._file = PinFile(path)
        self._now: dict[str, dict[tuple[Kind, str], Any]] = {}

    def known(self, server: str) -> bool:
        """Whether this server's features were approved once. Raises BadPins."""
        return "features" in self._server(server)

    def seen(self, server: str, features: ServerFeatures) -> list[PinDifference]:
        """What a server offers now: how it differs from what was approved, in the order of the
        server.

        Raises BadPins.

        Of a server that is not known everything is `added`.
        """
        self._now[server] = dict(_canonical(features))
        return self._differences(server)

    def first(self, server: str, features: ServerFeatures) -> list[PinDifference]:
        """Approve all that a server offers, the first time that it is seen. Raises BadPins.

        If another host was quicker its approval stands, and the differences to it are returned.
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
        """Let a feature be as the difference has it; whether it is so now. Raises BadPins."""
        return bool(self.approve_all(server, [difference]))

    def approve_all(self, server: str, differences: Sequence[PinDifference]) -> list[PinDifference]:
        """Let features be as the differences have them, in one write.

        Only what was shown is approved: what the server has changed again since `seen` made the
        difference remains blocked.

        Returns:
            The differences that are approved now.

        Raises:
            BadPins: The file cannot be read, or not be written.
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
        """What of a server may not be used now, with words that say why. Raises BadPins."""
        return {
            (each.kind, each.name): _WORDS[each.how]
            for each in self._differences(server)
            if each.how != "gone"
        }

    def forget(self, server: str) -> None:
        """Forget a server; the next time it is seen is the first. Raises BadPins."""
        self._file.edit(lambda pins: pins["servers"].pop(server, None))

    def approved_command(self, server: str, digest: str) -> bool:
        """Whether this server's command, or address, was approved as it is; `digest` is any text
        that stands for it.

        Raises BadPins.
        """
        return bool(digest) and self._server(server).get("command") == digest

    def approve_command(self, server: str, digest: str) -> None:
        """Let a server be started by this command (`SEC-17`). Raises BadPins."""

        def change(pins: dict[str, Any]) -> None:
            pins["servers"].setdefault(server, {})["command"] = digest

        self._file.edit(change)

    def approved_skill(self, server: str, uri: str) -> Any:
        """The form in which a skill was approved: its frontmatter, and every file with its digest.

        Returns:
            The form, or None for a skill that was never approved.

        Raises:
            BadPins: The file cannot be read.
        """
        pinned = self._server(server).get("skills", {}).get(uri)
        return None if pinned is None else pinned["form"]

    def approve_skill(self, server: str, uri: str, form: Mapping[str, Any]) -> None:
        """Let a skill of a server be loaded as it is now, in place of what was approved before.

        Raises:
            BadPins: The file cannot be read, or not be written.
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
    """The digest of a form; empty where there is nothing."""
    return "" if form is None else digest_of_form(form)


def digest_of(feature: Tool | Prompt) -> str:
    """The digest of a feature as pins have it: of all that a model or a person reads of it,
    whatever the order of keys.
    """
    return digest_of_form(_tool(feature) if isinstance(feature, Tool) else _prompt(feature))


def unified(difference: PinDifference, *, context: int = 3) -> str:
    """A difference as terminals show it: the lines that went with -, those that came with +;
    nothing in it is invisible.
    """
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
    """Texts of several lines are shown as such: what was put into a long description would be lost
    in one.
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
    """Of `_meta` only what decides which page is shown for a tool."""
    return {
        key: value for key, value in (meta or {}).items() if key == "ui" or key.startswith("ui/")
    } or None


def _form(form: dict[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in form.items() if value is not None}


def _plain(value: Any, key: str = "") -> Any:
    """JSON that is the same for all ways in which a server may write the same:

    1.0 for 1, the required names in another order.
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
    """Half a character, which no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
