"""Finds the repository that a caller names among the configured ones."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

from .arguments import is_commit, phrase, read
from .hostile_repositories import RepositoryConfig, check_links, configurations_in, disarmed
from .index import digest_of, submodules_in
from .limits import GitLimits
from .output import OnProgress, Preamble
from .runner import Git, GitResult, OutputWindow, Settings, failed

VARIABLE = "INTERLOCK_GIT_REPOSITORIES"
_MOST_SUBMODULES = 200
# A revision that git cannot take for an option, a range, several revisions, or a path.
_SIMPLE = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@~^{}-]*")
_MOST_POINTER = 4096  # bytes of a pointer file such as `.git`


Ran = TypeVar("Ran")


class RepositoryPaths(NamedTuple):
    """The paths of a repository: its top folder, its git folder, and the git folder shared with its
    worktrees.
    """

    top: Path
    git: Path
    common: Path


class RepositorySnapshot(NamedTuple):
    """A repository when it is opened: its configurations, and the digest of its index (see
    `index`).
    """

    folders: RepositoryPaths
    configurations: list[RepositoryConfig]
    digest: bytes | None


def _look(folders: RepositoryPaths, deep: bool) -> RepositorySnapshot:
    configurations = configurations_in([folders.common, folders.git])
    return RepositorySnapshot(
        folders, configurations, digest_of(folders.git, configurations) if deep else None
    )


class Repository:
    """A repository that callers may use."""

    def __init__(
        self, name: str, folders: RepositoryPaths, git: Git, settings: Settings = ()
    ) -> None:
        self.name = name
        self.folders = folders
        self.git = git
        self._settings = settings

    @property
    def top(self) -> Path:
        """Its top folder."""
        return self.folders.top

    async def ask(
        self,
        *arguments: str,
        feed: bytes | None = None,
        most: int | None = None,
        seconds: float | None = None,
        variables: Mapping[str, str] | None = None,
        on_progress: OnProgress | None = None,
        fine: Sequence[int] = (0,),
    ) -> GitResult:
        """Run git in the repository.

        Raises ToolError with git's message for an exit code that is not in `fine`.
        """
        ended = await self.git.run(
            arguments,
            cwd=self.top,
            settings=self._settings,
            variables=self._variables(variables),
            feed=feed,
            most=most,
            seconds=seconds,
            on_progress=on_progress,
        )
        if ended.code not in fine:
            raise failed(ended.code, ended.errors)
        return ended

    async def window(
        self,
        *arguments: str,
        skip: int = 0,
        digest: str = "",
        most: int,
        variables: Mapping[str, str] | None = None,
        preamble: Preamble | None = None,
    ) -> OutputWindow:
        """A part of git's output. Raises ToolError."""
        return await self.git.window(
            arguments,
            cwd=self.top,
            settings=self._settings,
            variables=self._variables(variables),
            skip=skip,
            digest=digest,
            most=most,
            preamble=preamble,
        )

    @property
    def limits(self) -> GitLimits:
        """The limits for git."""
        return self.git.limits

    def _variables(self, more: Mapping[str, str] | None) -> dict[str, str]:
        # Set explicitly, so that git does not search for them and ignores `core.worktree`.
        return {"GIT_DIR": str(self.folders.git), "GIT_WORK_TREE": str(self.top), **(more or {})}

    def beside(self, other: Repository) -> Repository:
        """This repository with another one's settings added, for a command that accesses both."""
        return Repository(
            self.name,
            self.folders,
            self.git,
            tuple(dict.fromkeys([*self._settings, *other._settings])),
        )

    async def run_at(self, revision: str, run: Callable[[str], Awaitable[Ran]]) -> Ran:
        """Run something at the commit of a revision.

        A full object name is passed to git unresolved, which saves a run. Raises ToolError if the
        revision is not a commit.
        """
        if not _SIMPLE.fullmatch(revision) or ".." in revision:
            return await run(await self.object_of(revision))
        try:
            return await run(f"{revision}^{{commit}}")
        except ToolError:
            await self.object_of(revision)  # has a better message if this is the reason
            raise

    async def object_of(self, revision: str, kind: str = "commit") -> str:
        """The full name of the object of a revision.

        Raises ToolError for an unknown or ambiguous revision.
        """
        phrase(revision, "revision")
        ended = await self.ask(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{{kind}}}",
            fine=(0, 1, 128),
        )
        found = read(ended.output).strip()
        if ended.code or not is_commit(found):
            raise ToolError(f"There is no {kind} {line(revision)!r} in {self.name}.")
        return found

    async def head(self) -> str | None:
        """The commit of HEAD; None before the first commit."""
        ended = await self.ask(
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            "HEAD^{commit}",
            fine=(0, 1, 128),
        )
        return read(ended.output).strip() or None

    async def branch(self) -> str | None:
        """The current branch; None if HEAD is detached."""
        ended = await self.ask("symbolic-ref", "--quiet", "HEAD", fine=(0, 1))
        return read(ended.output).strip().removeprefix("refs/heads/") or None


class Repositories:
    """The configured repositories, by their paths."""

    def __init__(
        self,
        paths: Iterable[str | Path],
        worktrees: Path | None = None,
        git: Git | None = None,
        author: str | None = None,
    ) -> None:
        """Raise ValueError or OSError for a path that is not in a repository.

        `worktrees` is the folder for new worktrees.
        """
        self.git = git or Git()
        self.author = author
        self._given: dict[str, Path] = {}
        self._worktrees = worktrees.expanduser().resolve() if worktrees else None
        self._locks: dict[Path, asyncio.Lock] = {}
        for path in paths:
            top = top_of(Path(path).expanduser().resolve(strict=True))
            if top is None:
                raise ValueError(f"{path} is not in a git repository.")
            if top not in self._given.values():
                self._given[self._free_name(top)] = top

    def _free_name(self, top: Path) -> str:
        name = top.name or "root"
        n = 2
        while name in self._given:
            name = f"{top.name}-{n}"
            n = n + 1
        return name

    @property
    def names(self) -> list[str]:
        """The names of the configured repositories."""
        return list(self._given)

    def is_given(self, top: Path) -> bool:
        """Whether a folder is the top of a configured repository."""
        return top in self._given.values()

    def place_of_worktrees(self, repository: Repository) -> Path:
        """The only folder in which new worktrees of a repository are created."""
        main = repository.folders.common.parent
        return (
            self._worktrees / main.name
            if self._worktrees
            else main.parent / f"{main.name}.worktrees"
        )

    def lock(self, repository: Repository) -> asyncio.Lock:
        """The lock to hold while changing a repository."""
        return self._locks.setdefault(repository.folders.common, asyncio.Lock())

    async def open(self, word: str | None, *, deep: bool = False) -> Repository:
        """The repository that a caller names: by its name, its path, or a path inside; without a
        name the only one.

        `deep` is for commands that access the work tree: git then uses the index and enters
        submodules. Raises ToolError for one that is not configured, and for one that leads
        elsewhere.
        """
        try:
            name, seen = await asyncio.to_thread(self._seen, word, deep)
        except OSError as bad:
            raise ToolError(f"The repository cannot be read: {bad.strerror or bad}.") from None
        opened = Repository(
            name, seen.folders, self.git, await disarmed(self.git, seen.configurations)
        )
        if not deep:
            return opened
        all_of_them = [*seen.configurations, *await self._of_submodules(opened, seen)]
        return Repository(name, seen.folders, self.git, await disarmed(self.git, all_of_them))

    def _seen(self, word: str | None, deep: bool) -> tuple[str, RepositorySnapshot]:
        folders, name = self._found(word)
        return name, _look(folders, deep)

    async def _of_submodules(
        self, repository: Repository, seen: RepositorySnapshot
    ) -> list[RepositoryConfig]:
        """The configurations of all existing submodules, recursively."""
        found: list[RepositoryConfig] = []
        waiting = [(repository, seen.digest)]
        count = 0
        while waiting:
            one, index = waiting.pop()
            links = await submodules_in(one, index)
            if not links:
                continue
            for below in await asyncio.to_thread(self._below, one, links):
                count += 1
                if count > _MOST_SUBMODULES:
                    raise ToolError("The repository is too large to check its submodules.")
                found += below.configurations
                settings = await disarmed(self.git, below.configurations)
                waiting.append(
                    (
                        Repository(below.folders.top.name, below.folders, self.git, settings),
                        below.digest,
                    )
                )
        return found

    def _below(self, repository: Repository, links: Iterable[str]) -> list[RepositorySnapshot]:
        """The submodules at these paths, if they exist.

        Raises ToolError for one that leads elsewhere.
        """
        found = []
        for link in links:
            top = repository.top / link
            if os.path.lexists(top / ".git") and top.resolve() == top:
                folders = folders_of(
                    top, [repository.top, repository.folders.common, *self._given.values()]
                )
                check_links(
                    folders.git, [repository.top, repository.folders.common, *self._given.values()]
                )
                found.append(_look(folders, True))
        return found

    def _found(self, word: str | None) -> tuple[RepositoryPaths, str]:
        if not self._given:
            raise ToolError(
                f"No repository was given. Run `interlock serve git REPOSITORY`, or set {VARIABLE}."
            )
        if word is None:
            if len(self._given) > 1:
                raise ToolError(
                    f"Which repository? Available: {', '.join(map(line, self._given))}."
                )
            word = next(iter(self._given))
        top = self._given.get(word)
        if top is None:
            top = self._by_path(word)
        folders = folders_of(top, self._given.values())
        main = folders.common.parent
        if top not in self._given.values() and not self._ours(top, main):
            raise self._unknown(word)
        for folder in dict.fromkeys([folders.common, folders.git]):
            check_links(folder, [*self._given.values(), folders.common])
        name = next((name for name, path in self._given.items() if path == top), top.name)
        return folders, name

    def _by_path(self, word: str) -> Path:
        if not os.path.isabs(word) or "\0" in word:
            raise self._unknown(word)
        try:
            top = top_of(Path(word).resolve(strict=True))
        except (OSError, RuntimeError, ValueError):
            top = None
        if top is None:
            raise self._unknown(word)
        if top not in self._given.values():
            # Before anything in it is read: it must be at a place for worktrees of a configured
            # repository.
            tops = self._given.values()
            allowed = (
                [self._worktrees]
                if self._worktrees
                else [one.parent / f"{one.name}.worktrees" for one in tops]
            )
            if not any(top.is_relative_to(one) for one in allowed):
                raise self._unknown(word)
        return top

    def _ours(self, top: Path, main: Path) -> bool:
        """Whether a folder is a worktree of a configured repository, at the place for its
        worktrees.
        """
        place = (
            self._worktrees / main.name
            if self._worktrees
            else main.parent / f"{main.name}.worktrees"
        )
        return main in self._given.values() and top.is_relative_to(place)

    def _unknown(self, word: str) -> ToolError:
        return ToolError(
            f"{line(word)} is not a repository of this server. Available: "
            f"{', '.join(map(line, self._given))}."
        )


def top_of(path: Path) -> Path | None:
    """The nearest folder upwards from a path that has a `.git`; None without one, or inside a git
    folder.
    """
    for folder in [path, *path.parents]:
        if folder.name.lower() == ".git":
            return None
        if os.path.lexists(folder / ".git"):
            return folder
    return None


def folders_of(top: Path, given: Iterable[Path]) -> RepositoryPaths:
    """The git folders of a repository.

    Raises ToolError if its `.git` points to a folder that does not point back, or is not
    configured.
    """
    pointer = top / ".git"
    mode = pointer.lstat().st_mode
    if stat.S_ISDIR(mode):
        if os.path.lexists(pointer / "commondir"):
            raise ToolError(
                f"{line(top.name)}/.git refers to another git folder (commondir), so it "
                "is not opened."
            )
        return RepositoryPaths(top, pointer, pointer)
    if not stat.S_ISREG(mode):
        raise ToolError(f"{line(top.name)}/.git is a link, which is not followed.")
    target = _pointed(pointer, "gitdir: ")
    if target is None or not target.is_dir():
        raise ToolError(f"{line(top.name)}/.git refers to a missing folder.")
    if (
        target.parent.name == "worktrees"
        and _leads(target / "gitdir", pointer)
        and _leads(target / "commondir", target.parent.parent)
    ):
        return RepositoryPaths(top, target, target.parent.parent)
    if not os.path.lexists(target / "commondir") and any(
        target.is_relative_to(one) for one in [top, *given]
    ):
        return RepositoryPaths(
            top, target, target
        )  # a submodule of a configured repository, or a separate git folder inside one
    raise ToolError(
        f"{line(top.name)}/.git refers to a folder that is not a repository of this "
        "server, or that does not refer back, so it is not followed."
    )


def _leads(file: Path, wanted: Path) -> bool:
    found = _pointed(file, "")
    return found is not None and found == wanted.resolve()


def _pointed(file: Path, prefix: str) -> Path | None:
    """The target of a pointer file, which has one line."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode) or file.lstat().st_size > _MOST_POINTER:
            return None
        text = os.fsdecode(file.read_bytes()).rstrip("\r\n")
        if not text.startswith(prefix) or "\0" in text:
            return None
        return Path(file.parent, text.removeprefix(prefix)).resolve()
    except OSError:
        return None
