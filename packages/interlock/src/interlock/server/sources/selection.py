"""Which features of a source a mount includes: by patterns of names, by tags, and by versions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from ..catalogue.features import FeatureKind, Keyed, tags_of, version_key, version_of

Version = tuple[int, ...]
"""A version for comparisons."""

_COMPARISON = re.compile(r"(>=|<=|==|>|<)?\s*(\S+)")
_COMPARISONS: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


class Selection(Struct, frozen=True):
    """The features that a mount includes. Patterns are those of a shell: `*`, `?` and `[...]`.

    Attributes:
        tools: Patterns of the names of tools; None for all.
        without: Patterns of names, URIs and URI templates of features to leave out.
        with_tags: Only features with one of these tags; None for all.
        without_tags: No features with one of these tags.
        versions: Comparisons that the version of a feature has to fulfil. A feature without a
            version fulfils them.
    """

    tools: Sequence[str] | None = None
    without: Sequence[str] = ()
    with_tags: frozenset[str] | None = None
    without_tags: frozenset[str] = frozenset()
    versions: Sequence[tuple[str, Version]] = ()

    def includes(
        self, kind: FeatureKind, name: str, tags: frozenset[str], version: Version | None = None
    ) -> bool:
        """Whether a feature is included, under the name that its source gave it."""
        if version is not None and not all(
            _COMPARISONS[sign](version, limit) for sign, limit in self.versions
        ):
            return False
        if kind == "tool" and self.tools is not None and not _matches(name, self.tools):
            return False
        if self.with_tags is not None and not self.with_tags & tags:
            return False
        return not (self.without_tags & tags) and not _matches(name, self.without)

    def leaves_out(self, kind: FeatureKind, feature: Keyed) -> bool:
        """Whether a feature is not included."""
        listing = feature.listing
        return not self.includes(kind, feature.key, tags_of(listing), version_of(listing))

    @property
    def includes_unlisted(self) -> bool:
        """Whether resources that the source does not list are included too. Their tags are
        unknown.
        """
        return self.with_tags is None and not self.without_tags


def selection_of(
    tools: str | Iterable[str] | None,
    without: str | Iterable[str],
    with_tags: str | Iterable[str] | None,
    without_tags: str | Iterable[str],
    versions: str | None = None,
) -> Selection:
    """Return the selection of a mount's options. A string stands for a list of one.

    Raises ValueError for malformed comparisons of versions.
    """
    return Selection(
        None if tools is None else _listed(tools),
        _listed(without),
        None if with_tags is None else frozenset(_listed(with_tags)),
        frozenset(_listed(without_tags)),
        () if versions is None else tuple(_comparison(one) for one in versions.split(",")),
    )


def _comparison(text: str) -> tuple[str, Version]:
    """Return one comparison of versions. Raises ValueError."""
    found = _COMPARISON.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} compares no version: write versions='>=2,<3'")
    return found[1] or "==", version_key(found[2])


def _listed(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
