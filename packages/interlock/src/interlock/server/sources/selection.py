"""Which features of a source a mount includes: by patterns of names, and by tags."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from ..catalogue.features import FeatureKind, Keyed, tags_of


class Selection(Struct, frozen=True):
    """The features that a mount includes. Patterns are those of a shell: `*`, `?` and `[...]`.

    Attributes:
        tools: Patterns of the names of tools; None for all.
        without: Patterns of names, URIs and URI templates of features to leave out.
        with_tags: Only features with one of these tags; None for all.
        without_tags: No features with one of these tags.
    """

    tools: Sequence[str] | None = None
    without: Sequence[str] = ()
    with_tags: frozenset[str] | None = None
    without_tags: frozenset[str] = frozenset()

    def includes(self, kind: FeatureKind, name: str, tags: frozenset[str]) -> bool:
        """Whether a feature is included, under the name that its source gave it."""
        if kind == "tool" and self.tools is not None and not _matches(name, self.tools):
            return False
        if self.with_tags is not None and not self.with_tags & tags:
            return False
        return not (self.without_tags & tags) and not _matches(name, self.without)

    def leaves_out(self, kind: FeatureKind, feature: Keyed) -> bool:
        """Whether a feature is not included."""
        return not self.includes(kind, feature.key, tags_of(feature.listing))

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
) -> Selection:
    """Return the selection of a mount's options. A string stands for a list of one."""
    return Selection(
        None if tools is None else _listed(tools),
        _listed(without),
        None if with_tags is None else frozenset(_listed(with_tags)),
        frozenset(_listed(without_tags)),
    )


def _listed(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
