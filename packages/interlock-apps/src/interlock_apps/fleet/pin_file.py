"""The pin file `interlock.lock`: JSON that people can read and keep in version control."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from interlock.configs import BadRecord, RecordFile

VERSION = 1

_KINDS = frozenset({"tool", "prompt", "instructions"})


class BadPins(ValueError):
    """The file of pins cannot be used as it is; the words say what to do.

    It is never overwritten then.
    """


def digest_of_form(form: Any) -> str:
    """The digest of a feature's canonical form, whatever the order of its keys."""
    text = json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class PinFile:
    """The pins of all servers in one file, which several hosts may use at once; in memory where
    there is no path.

    Every change reads the file anew under a lock, and puts a new file in its place. The folder must
    be there.
    """

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, {"interlock": "pins", "version": VERSION, "servers": {}})

    def read(self) -> dict[str, Any]:
        """The pins as they are now, not to be changed; empty where there is no file yet.

        Raises BadPins.
        """
        if self.path is None:
            return self._pins
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                if found.st_size > MAX_BYTES:
                    raise BadPins(
                        f"{self.path} is larger than {MAX_BYTES >> 20} MB: it is not a file "
                        "of pins. Move it away."
                    )
                self._pins, self._stamp = _checked(self.path.read_bytes(), self.path), stamp
        except FileNotFoundError:
            # it may have come with a project, and lead to where something is read that was not
            # there before
            if self.path.is_symlink():
                raise BadPins(
                    f"{self.path} is a link that leads to nothing. Remove it, or make the "
                    "file that it names."
                ) from None
            self._pins, self._stamp = {"interlock": "pins", "version": VERSION, "servers": {}}, None
        except OSError as bad:
            raise BadPins(
                f"{self.path} cannot be read: {bad.strerror}. See that it is a file that "
                "you may read."
            ) from None
        return self._pins

    def edit(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Let `change` work on the pins, and write them.

        Raises BadPins, and writes nothing then.
        """
        if self.path is None:
            change(self._pins)
            return
        lock = self.path.with_name(f".{self.path.name}.turn")
        try:
            with file_lock(lock, patience=PATIENCE):
                self._stamp = (
                    None  # a file that was replaced within one tick of the clock may look the same
                )
                pins = copy.deepcopy(self.read())
                change(pins)
                write_atomic(self.path, _written(pins))
                self._stamp = None
        except TimeoutError:
            raise BadPins(
                f"Another process has held {lock} for {PATIENCE:g} seconds. End it, and try again."
            ) from None
        except OSError as bad:
            raise BadPins(
                f"{self.path} cannot be written: {bad.strerror}. See that its folder is "
                "there and yours to write in."
            ) from None


def _written(pins: dict[str, Any]) -> bytes:
    return (json.dumps(pins, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode(
        "utf-8", "replace"
    )


def _checked(data: bytes, path: Path) -> dict[str, Any]:
    """The pins of a file.

    One that is not understood to the last entry is refused, for a guess would approve something.
    """
    remedy = (
        "Restore it from version control, or move it away: then every server counts as seen "
        "for the first time."
    )
    try:
        pins = json.loads(data.decode("utf-8"))
    except RecursionError:
        raise BadPins(f"{path} is nested too deeply to be a file of pins. {remedy}") from None
    except ValueError as bad:
        raise BadPins(f"{path} is not JSON ({bad}). {remedy}") from None
    if (
        not isinstance(pins, dict)
        or pins.get("interlock") != "pins"
        or not isinstance(pins.get("servers"), dict)
    ):
        raise BadPins(f"{path} is not a pin file. {remedy}")
    if pins.get("version") != VERSION or isinstance(pins["version"], bool):
        raise BadPins(
            f"{path} is of version {json.dumps(pins.get('version'))}; this interlock knows "
            f"version {VERSION}. "
            "Update interlock, or give it another file."
        )
    for server, entry in pins["servers"].items():
        if words := _trouble(entry):
            raise BadPins(
                f"{path}: the entry of the server {server!r} {words}. Delete that entry, "
                "and you will be asked about the server again."
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
        return "is not as it was written"
    skills = entry.get("skills", {})
    if not isinstance(skills, dict):
        return "is not as it was written"
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
        return "is not as it was written"
    for kind, kept in features.items():
        for name, pinned in kept.items():
            if not _is_pinned(pinned):
                return f"has a digest at {kind} {name!r} that does not match its content"
    return ""


def _is_pinned(pinned: Any) -> bool:
    """Whether a form stands beside its own digest."""
    return (
        isinstance(pinned, dict)
        and pinned.keys() == {"digest", "form"}
        and bool(pinned["digest"] == digest_of_form(pinned["form"]))
    )
