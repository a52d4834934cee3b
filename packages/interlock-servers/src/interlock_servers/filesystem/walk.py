"""Walks through folders by descriptors. It never enters links, other mounts or the trash."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from typing import NamedTuple

from interlock import ToolError

from .limits import FilesystemLimits
from .openat import FOLDER, again, step
from .resolve import (
    OutsideRoots,
    ResolvedPath,
    RootFolder,
    checked_folder,
    hidden_away,
    without_bad_bytes,
)
from .results import FolderEntries, FolderEntry, entry_of
from .roots import CallProgress, CallRoots


class WalkedEntry(NamedTuple):
    """An entry found by a walk: its opened folder, its name, and the steps to it.

    The folder is open only until the walk continues.
    """

    parent: int
    name: str
    steps: tuple[str, ...]
    stat: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, and not a link to one."""
        return stat.S_ISDIR(self.stat.st_mode)


class Walk:
    """A walk through a folder in the order of names, with each folder before its content.

    `cut` says whether something was left out.
    """

    def __init__(
        self,
        folder: RootFolder,
        limits: FilesystemLimits,
        progress: CallProgress,
        *,
        depth: int | None = None,
        hidden: bool = True,
        without: ExcludePatterns | None = None,
    ) -> None:
        self._folder = folder
        self._limits = limits
        self._progress = progress
        self._hidden = hidden
        self._without = without
        self._depth = min(depth if depth is not None else limits.depth, limits.depth)
        self.cut = False

    def below(self, fd: int, steps: tuple[str, ...] = ()) -> Iterator[WalkedEntry]:
        """The entries in and below an opened folder."""
        stack = [(again(fd), iter(self._names(fd)), steps)]
        try:
            while stack:
                here, names, way = stack[-1]
                name = next(names, None)
                if name is None:
                    os.close(stack.pop()[0])
                    continue
                if not self._progress.step("/".join(way)):
                    self.cut = True
                    return
                try:
                    found = WalkedEntry(
                        here, name, (*way, name), os.stat(name, dir_fd=here, follow_symlinks=False)
                    )
                except OSError:
                    continue  # it has vanished since it was listed
                if self._without is not None and self._without.fits(found.steps[len(steps) :]):
                    continue
                yield found
                if found.is_folder:
                    self._enter(stack, found, len(found.steps) - len(steps))
        finally:
            for here, _, _ in stack:
                os.close(here)

    def here(self, fd: int) -> Iterator[tuple[str, os.stat_result]]:
        """The entries directly in an opened folder."""
        for name in self._names(fd):
            if not self._progress.step():
                self.cut = True
                return
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # it has vanished since it was listed
            yield name, found

    def _enter(
        self,
        stack: list[tuple[int, Iterator[str], tuple[str, ...]]],
        found: WalkedEntry,
        depth: int,
    ) -> None:
        if depth >= self._depth:
            self.cut = True
            return
        with contextlib.suppress(
            OSError, OutsideRoots
        ):  # it is a link by now, unreadable, or another mount
            fd = checked_folder(
                step(found.name, FOLDER, found.parent, mounts=self._limits.mounts),
                self._folder,
                found.name,
                self._limits,
            )
            stack.append((fd, iter(self._names(fd)), found.steps))

    def _names(self, fd: int) -> list[str]:
        own = again(fd)
        names: list[str] = []
        try:
            with os.scandir(own) as entries:
                for entry in entries:
                    if not hidden_away(entry.name) and (
                        self._hidden or not entry.name.startswith(".")
                    ):
                        names.append(entry.name)
                    if len(names) > self._limits.walked:
                        self.cut = True
                        break
        except OSError:
            return []
        finally:
            os.close(own)
        return sorted(names)


def listed(
    call_roots: CallRoots,
    place: ResolvedPath,
    progress: CallProgress,
    *,
    hidden: bool = True,
    sort: str = "name",
    skip: int = 0,
) -> FolderEntries:
    """The entries directly in a folder. Raises ToolError."""
    limits = call_roots.limits
    fd = place.open_folder()
    try:
        walk = Walk(place.folder, limits, progress, hidden=hidden)
        every = [(name, found, _target(name, fd, found)) for name, found in walk.here(fd)]
    finally:
        os.close(fd)
    if sort == "size":
        every.sort(key=lambda one: -one[1].st_size if stat.S_ISREG(one[1].st_mode) else 1)
    elif sort == "modified":
        every.sort(key=lambda one: -one[1].st_mtime)
    chosen = every[skip : skip + limits.entries]
    own = without_bad_bytes(call_roots.shown(place.folder, place.parts))
    above = "" if own == "." else f"{own}/"
    entries = [
        entry_of(above + without_bad_bytes(name), found, target) for name, found, target in chosen
    ]
    more = len(every) - skip - len(chosen)
    if walk.cut:
        why = "the folder is too large to be read to its end"
    elif more > 0:
        why = f"{more} more: skip {skip + len(chosen)}"
    else:
        why = None
    return FolderEntries(own, entries, why is None, why)


def _target(name: str, parent: int, found: os.stat_result) -> str | None:
    if not stat.S_ISLNK(found.st_mode):
        return None
    with contextlib.suppress(OSError):
        return without_bad_bytes(os.readlink(name, dir_fd=parent))
    return None


class TreeNode(FolderEntry, rename="camel", omit_defaults=True):
    """Something in a tree, and what is in it; `more` says that a folder has more than is shown."""

    entries: list[TreeNode] | None = None
    more: bool = False


def tree_of(
    call_roots: CallRoots,
    place: ResolvedPath,
    progress: CallProgress,
    depth: int,
    *,
    hidden: bool,
    without: ExcludePatterns | None = None,
) -> tuple[TreeNode, bool]:
    """A folder and its content down to a depth, and whether it is complete down to that depth.

    Raises ToolError.
    """
    fd = place.open_folder()
    top = TreeNode(
        without_bad_bytes(call_roots.shown(place.folder, place.parts)), "folder", entries=[]
    )
    branches = {place.parts: top}
    count = 0
    try:
        walk = Walk(
            place.folder, call_roots.limits, progress, depth=depth, hidden=hidden, without=without
        )
        for found in walk.below(fd, place.parts):
            if count >= call_roots.limits.entries:
                top.more = True
                return top, False
            count += 1
            size = found.stat.st_size if stat.S_ISREG(found.stat.st_mode) else None
            entry = entry_of(
                without_bad_bytes(found.name),
                found.stat,
                _target(found.name, found.parent, found.stat),
            )
            branch = TreeNode(entry.path, entry.kind, size, target=entry.target)
            above = branches[found.steps[:-1]]
            if above.entries is not None:
                above.entries.append(branch)
            if found.is_folder:
                branches[found.steps] = branch
                branch.entries = []
                if len(found.steps) - len(place.parts) >= depth:
                    branch.entries = None
                    branch.more = True
        return top, not progress.late
    finally:
        os.close(fd)


class GlobPattern:
    """A glob: `*`, `?` and `[...]` within a name, `**` for any folders, `{a,b}` for alternatives.

    Without `/` it matches the name alone. Names are compared exactly: case and Unicode form count.
    """

    def __init__(self, text: str) -> None:
        if len(text) > 500 or "\0" in text:
            raise ToolError("A pattern can have at most 500 characters, and no NUL.")
        self._ways = [self._compiled(one) for one in _spread(text)]

    @staticmethod
    def _compiled(text: str) -> list[re.Pattern[str] | None]:
        names = [part for part in text.split("/") if part not in ("", ".")]
        if "/" not in text:
            names = ["**", *names]
        return [None if part == "**" else re.compile(translate(part)) for part in names]

    def fits(self, steps: Sequence[str]) -> bool:
        """Whether the steps to an entry match, from the folder of the search."""
        return any(_fits(way, steps) for way in self._ways)


class ExcludePatterns:
    """Globs that exclude entries with all below them. Raises ToolError for an invalid glob."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = patterns
        self._all = [GlobPattern(one) for one in patterns]

    def fits(self, steps: Sequence[str]) -> bool:
        """Whether an entry is excluded by its own path, from the folder of the search; its parents
        are not checked.
        """
        return any(one.fits(steps) for one in self._all)

    def holds(self, steps: Sequence[str]) -> bool:
        """Whether an entry, or a folder above it, is excluded."""
        return any(self.fits(steps[:n]) for n in range(1, len(steps) + 1))


def without(patterns: Sequence[str] | None) -> ExcludePatterns | None:
    """The patterns that exclude entries; None without patterns. Raises ToolError."""
    return ExcludePatterns(patterns) if patterns else None


def _fits(way: Sequence[re.Pattern[str] | None], steps: Sequence[str]) -> bool:
    """Match step by step with the set of reachable states, so that no pattern takes long."""
    at = _skipping({0}, way)
    for name in steps:
        after: set[int] = set()
        for n in at:
            if n < len(way):
                part = way[n]
                if part is None:
                    after.add(n)
                elif part.match(name):
                    after.add(n + 1)
        at = _skipping(after, way)
        if not at:
            return False
    return len(way) in at


def _skipping(at: set[int], way: Sequence[re.Pattern[str] | None]) -> set[int]:
    whole = set(at)
    for n in sorted(at):
        while n < len(way) and way[n] is None:
            n += 1
            whole.add(n)
    return whole


def _spread(text: str) -> list[str]:
    """Expand the braces of a pattern; at most 64 patterns."""
    done: list[str] = []
    todo = [text]
    while todo:
        one = todo.pop(0)
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if inner is None:
            done.append(one)
        else:
            todo += [
                one[: inner.start()] + choice + one[inner.end() :] for choice in inner[1].split(",")
            ]
        if len(done) + len(todo) > 64:
            raise ToolError("The braces of this pattern expand to more than 64 patterns.")
    return done


def names_of(place: ResolvedPath, most: int) -> list[tuple[str, bool]]:
    """The names in a folder that are valid text, sorted, and whether each is a folder.

    Raises ToolError.
    """
    fd = place.open_folder()
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                if not hidden_away(entry.name) and without_bad_bytes(entry.name) == entry.name:
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
                if len(found) >= most:
                    break
    finally:
        os.close(fd)
    return sorted(found)
