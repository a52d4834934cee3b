"""Names of skills and URIs of their files, checked against path traversal."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from ..types.errors import SkillError

SKILL_MD = "SKILL.md"
"""The file at the root of every skill."""

MOST_NAME = 64
"""The longest name of a skill, in characters."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NOT_IN_URIS = re.compile(r"[^!$&'()*+,\-./0-9:;=@A-Z_a-z~%]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE_IN_SEGMENT = "!$&'()*+,;=:@"
_SAFE_IN_REG_NAME = "!$&'()*+,;="


def check_name(name: str) -> None:
    """Check the name of a skill by the rules of Agent Skills.

    Raises:
        SkillError: It breaks one of them; the message says which.
    """
    if not 1 <= len(name) <= MOST_NAME or not _NAME.fullmatch(name):
        raise SkillError(
            f"{name!r} cannot be the name of a skill: use 1 to {MOST_NAME} of a-z, 0-9 and single "
            "hyphens, which do not stand first or last."
        )


def uri_of(root: str, path: str) -> str:
    """The URI of a file of a skill.

    Args:
        root: The URI of the skill's directory, without a slash at its end.
        path: The file's path in it, with "/" between its segments.
    """
    return f"{root}/{'/'.join(quote(part, safe=_SAFE_IN_SEGMENT) for part in path.split('/'))}"


def uri_at(path: str) -> str:
    """The `skill://` URI of a skill's directory or of a file, for a path such as
    "acme/billing/refunds".
    """
    first, *others = path.split("/")
    segments = [quote(first, safe=_SAFE_IN_REG_NAME)]
    segments += [quote(part, safe=_SAFE_IN_SEGMENT) for part in others]
    return "skill://" + "/".join(segments)


def root_of(uri: str) -> str:
    """The URI of a skill's directory, from the URI of its `SKILL.md`.

    Raises:
        SkillError: The URI does not end in /SKILL.md, or is not one that can be told apart from
            others.
    """
    segments_of(uri)
    root, slash, last = uri.rpartition("/")
    if not slash or last != SKILL_MD or root.endswith("/"):
        raise SkillError(f"{uri} is not the URI of a SKILL.md.", uri=uri)
    return root


def segments_of(uri: str) -> list[str]:
    """The decoded segments of a URI behind its scheme.

    Raises:
        SkillError: The URI has no scheme, a query, a fragment, an empty or dot segment, a control
            character, or an escaped slash. Such URIs are what path tricks are made of.
    """
    scheme = _SCHEME.match(uri)
    if scheme is None:
        raise SkillError(f"{uri!r} is not an absolute URI such as skill://refunds/SKILL.md.")
    rest = uri[scheme.end() :]
    if _NOT_IN_URIS.search(rest) or _BAD_ESCAPE.search(rest):
        raise SkillError(f"{uri!r} has characters that a skill's URI cannot have.")
    segments = []
    for raw in rest.split("/"):
        try:
            segment = unquote(raw, errors="strict")
        except UnicodeDecodeError:
            raise SkillError(f"{uri!r} is not UTF-8 behind its percent signs.") from None
        check_segment(segment, uri)
        segments.append(segment)
    return segments


def check_segment(segment: str, whole: str) -> None:
    """Raise SkillError for a segment of a path that is empty, a dot segment, or holds a
    separator.
    """
    if segment in ("", ".", ".."):
        raise SkillError(f"{whole!r} has a segment {segment!r}, which a skill's path cannot have.")
    if "/" in segment or "\\" in segment or any(ord(c) < 32 or ord(c) == 127 for c in segment):
        raise SkillError(f"{whole!r} has a separator or a control character within a segment.")


def path_in(root: str, uri: str) -> str:
    """The decoded path of a file within a skill's directory.

    Raises:
        SkillError: The URI is not within the directory.
    """
    if not uri.startswith(f"{root}/"):
        raise SkillError(f"{uri} is not a file of the skill at {root}.")
    inside = len(segments_of(root))
    return "/".join(segments_of(uri)[inside:])


def resolve(reference: str) -> str:
    """The path that a relative reference in a `SKILL.md` names, seen from the skill's directory.

    Raises:
        SkillError: The reference is absolute, or leads out of the skill.
    """
    if not reference or "\\" in reference or reference.startswith("/"):
        raise SkillError(f"{reference!r} is not a relative path within the skill.")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", reference):
        raise SkillError(f"{reference!r} is a URI; only relative paths within the skill are read.")
    found: list[str] = []
    for part in reference.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not found:
                raise SkillError(f"{reference!r} leads out of the skill.")
            found.pop()
        else:
            check_segment(part, reference)
            found.append(part)
    if not found:
        raise SkillError(f"{reference!r} names the skill's directory, not a file.")
    return "/".join(found)
