"""Skill entries of `skills/list` and `skills/get`, and the checks of what a server sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from .. import types as t
from ..types.errors import SkillError
from .frontmatter import read_frontmatter, same
from .names import check_name, path_in, root_of, segments_of, uri_of

DYNAMIC: Literal["dynamic"] = "dynamic"
"""What stands in place of the files of a skill whose content is generated."""

MOST_FILES = 512
"""The most files of one skill, its SKILL.md included."""

MOST_BYTES = 16 * 1024 * 1024
"""The most bytes of one skill, all its files together."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class SkillResource(t.WireType, frozen=True, kw_only=True):
    """A file of a skill: its URI, the SHA-256 digest of its bytes, and how many bytes it has."""

    uri: str
    digest: str
    size: int


class SkillEntry(t.WireType, frozen=True, kw_only=True):
    """The entry for one skill: the URI of its `SKILL.md`, its frontmatter, and all its files.

    `resources` is "dynamic" where the content is generated and has no stable digests.
    """

    uri: str
    frontmatter: t.JSONObject
    resources: list[SkillResource] | Literal["dynamic"]

    @property
    def name(self) -> str:
        """The name of the frontmatter: a label, which other skills may share."""
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        """What the skill is for."""
        return str(self.frontmatter["description"])

    @property
    def root(self) -> str:
        """The URI of the skill's directory."""
        return root_of(self.uri)

    @property
    def is_dynamic(self) -> bool:
        """Whether the content is generated, so that nothing can be verified."""
        return isinstance(self.resources, str)

    @property
    def files(self) -> dict[str, SkillResource]:
        """The files by their paths in the skill; empty where it is dynamic."""
        root = self.root
        return {path_in(root, file.uri): file for file in self.listed}

    @property
    def listed(self) -> list[SkillResource]:
        """The files; none where it is dynamic."""
        return [] if isinstance(self.resources, str) else self.resources

    @property
    def size(self) -> int:
        """How many bytes all files have together."""
        return sum(file.size for file in self.listed)


def digest_of(data: bytes) -> str:
    """The digest of a file's bytes, as entries write it."""
    return f"sha256:{sha256(data).hexdigest()}"


def entry_of(raw: Any) -> SkillEntry:
    """Check an entry that a server sent, and return it.

    Args:
        raw: The entry as JSON: a dict. An entry that is checked already is returned as it is.

    Raises:
        SkillError: The entry breaks a rule of the extension; the message says which one.
    """
    if isinstance(raw, SkillEntry):
        return raw
    if not isinstance(raw, Mapping) or not isinstance(raw.get("uri"), str):
        raise SkillError("A skill's entry has no URI.")
    uri: str = raw["uri"]
    try:
        return _checked(uri, raw)
    except SkillError as bad:
        raise SkillError(f"The entry of the skill {uri} is not valid: {bad}", uri=uri) from None


def _checked(uri: str, raw: Mapping[str, Any]) -> SkillEntry:
    root = root_of(uri)
    frontmatter = raw.get("frontmatter")
    if not isinstance(frontmatter, dict):
        raise SkillError("it has no frontmatter.")
    check_frontmatter(frontmatter)
    last = segments_of(root)[-1]
    if last != frontmatter["name"]:
        raise SkillError(
            f"its URI names the skill {last!r} and its frontmatter {frontmatter['name']!r}."
        )
    resources = raw.get("resources")
    if resources == DYNAMIC:
        return SkillEntry(uri=uri, frontmatter=frontmatter, resources=DYNAMIC)
    if not isinstance(resources, list):
        raise SkillError('its "resources" are neither a list of files nor "dynamic".')
    files = _files(root, resources)
    if not any(file.uri == uri for file in files):
        raise SkillError("its list of files lacks its own SKILL.md.")
    entry = SkillEntry(uri=uri, frontmatter=frontmatter, resources=files)
    check_size(len(files), entry.size)
    return entry


def _files(root: str, resources: list[Any]) -> list[SkillResource]:
    if len(resources) > MOST_FILES:
        check_size(len(resources), 0)
    files: list[SkillResource] = []
    seen: set[str] = set()
    for raw in resources:
        try:
            file = msgspec.convert(raw, SkillResource, strict=True)
        except msgspec.ValidationError as bad:
            raise SkillError(f"one of its files is malformed ({bad}).") from None
        if isinstance(raw.get("size"), bool) or file.size < 0:
            raise SkillError(f"the size of {file.uri} is not a number of bytes.")
        if not _DIGEST.fullmatch(file.digest):
            raise SkillError(
                f"the digest of {file.uri} is not sha256: and 64 lower-case hexadecimal characters."
            )
        path = path_in(root, file.uri)
        if path in seen:
            raise SkillError(f"it lists the file {path} twice.")
        seen.add(path)
        files.append(file)
    return files


def check_frontmatter(frontmatter: Mapping[str, Any]) -> None:
    """Check the fields that every skill has.

    Raises:
        SkillError: The name or the description is missing or malformed.
    """
    for field in ("name", "description"):
        value = frontmatter.get(field)
        if not isinstance(value, str) or not value.strip():
            raise SkillError(f"its frontmatter has no {field}.")
    check_name(frontmatter["name"])


def check_size(files: int, size: int) -> None:
    """Raise SkillError for a skill of more files, or more bytes, than every host must accept."""
    if files > MOST_FILES:
        raise SkillError(f"it has {files} files; at most {MOST_FILES} are allowed.")
    if size > MOST_BYTES:
        raise SkillError(f"its files have {size:,} bytes; at most {MOST_BYTES:,} are allowed.")


def find(entry: SkillEntry, path: str) -> SkillResource:
    """The listed file of a path within a skill.

    Raises:
        SkillError: The entry does not list it. A file that a server added later is one of these.
    """
    uri = uri_of(entry.root, path)
    for file in entry.listed:
        if file.uri == uri or path_in(entry.root, file.uri) == path:
            return file
    raise SkillError(
        f"{path} is not a file of the skill {entry.uri} as it was listed, so it is not read. If"
        " the "
        "server has added it since, get the skill again.",
        uri=entry.uri,
        changed=True,
    )


def verify(entry: SkillEntry, file: SkillResource, data: bytes) -> None:
    """Compare a file with the size and the digest in the skill's entry.

    Args:
        entry: The entry of the skill.
        file: The file in that entry.
        data: The content of the file.

    Raises:
        SkillError: They differ. The content must not be used.
    """
    if len(data) != file.size:
        wrong = f"has {len(data):,} bytes, and its entry says {file.size:,}"
    elif digest_of(data) != file.digest:
        wrong = "has another digest than its entry says"
    else:
        return
    raise SkillError(
        f"{file.uri} {wrong}. It was changed since the skill was listed, or tampered with, and is "
        "not used. Get the skill again to see its present state.",
        uri=entry.uri,
        changed=True,
    )


def verify_frontmatter(entry: SkillEntry, text: str) -> None:
    """Compare the frontmatter in a `SKILL.md` with that of its entry, field by field.

    Raises:
        SkillError: They differ, or the text's cannot be read. The skill must not be loaded.
    """
    try:
        found = read_frontmatter(text)
    except SkillError as bad:
        raise SkillError(f"{entry.uri}: {bad}", uri=entry.uri) from None
    fields = [*entry.frontmatter, *(field for field in found if field not in entry.frontmatter)]
    different = [
        field
        for field in fields
        if field not in found
        or field not in entry.frontmatter
        or not same(found[field], entry.frontmatter[field])
    ]
    if different:
        raise SkillError(
            f"The frontmatter of {entry.uri} is not what its entry says ({', '.join(different)} "
            "differs), so the skill is not loaded.",
            uri=entry.uri,
            changed=True,
        )


def fingerprint(entry: SkillEntry) -> str | None:
    """What an approval binds to: one digest over every URI and digest of an entry, whatever their
    order.

    Returns:
        The digest, or None for a dynamic skill, to which no approval can be bound.
    """
    if entry.is_dynamic:
        return None
    pairs = sorted((file.uri, file.digest) for file in entry.listed)
    return digest_of(msgspec.json.encode([entry.uri, pairs]))
