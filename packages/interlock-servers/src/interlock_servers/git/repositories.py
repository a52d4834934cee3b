"""Finds the repository that a caller names among those that were configured."""

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
# A revision that no git takes for an option, a range, several of them or a path.
_SIMPLE = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@~^{}-]*")
_MOST_POINTER = 4096  # bytes of a file that says where something lies


Ran = TypeVar("Ran")


class RepositoryPaths(NamedTuple):
    """Where a repository lies: its top, its git folder, and the one that it shares with its
    worktrees.
    """

    top: Path
    git: Path
    common: Path


class RepositorySnapshot(NamedTuple):
    """A repository as it lies there when it is opened: its configurations, and the digest of its
    index (see `index`).
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
    """A repository that may be worked in."""

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
        """Run git in it.

        Raises ToolError with git's complaint for any other exit code than those that are fine.
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
        """A part of what git writes. Raises ToolError."""
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
        """How much is done at most."""
        return self.git.limits

    def _variables(self, more: Mapping[str, str] | None) -> dict[str, str]:
        # Named outright, so that git looks nowhere itself and `core.worktree` says nothing.
        return {"GIT_DIR": str(self.folders.git), "GIT_WORK_TREE": str(self.top), **(more or {})}

    def beside(self, other: Repository) -> Repository:
        """This repository, with the settings that the other one needs too: git will look into
        it.
        """
        return Repository(
            self.name,
            self.folders,
            self.git,
            tuple(dict.fromkeys([*self._settings, *other._settings])),
        )

    async def run_at(self, revision: str, run: Callable[[str], Awaitable[Ran]]) -> Ran:
        """Run something at the commit that a revision means.

        One that can be nothing else is left to git, which then runs once and not twice. Raises
        ToolError where the revision means no commit.
        """
        if not _SIMPLE.fullmatch(revision) or ".." in revision:
            return await run(await self.object_of(revision))
        try:
            return await run(f"{revision}^{{commit}}")
        except ToolError:
            await self.object_of(revision)  # where this is the reason, it has better words
            raise

    async def object_of(self, revision: str, kind: str = "commit") -> str:
        """The whole name of the object that a revision means.

        Raises ToolError where it means none, or is no single revision.
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
        """The commit that HEAD is at; None before the first one."""
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
        """The branch that is checked out; None where HEAD is detached."""
        ended = await self.ask("symbolic-ref", "--quiet", "HEAD", fine=(0, 1))
        return read(ended.output).strip().removeprefix("refs/heads/") or None


class Repositories:
    """The repositories that were given by their paths."""

    def __init__(
        self,
        paths: Iterable[str | Path],
        worktrees: Path | None = None,
        git: Git | None = None,
        author: str | None = None,
    ) -> None:
        """Raises ValueError or OSError for a path that is not in a repository.

        `worktrees` is where new worktrees may be made.
        """
        self.git = git or Git()
        self.author = author
        self._given: dict[str, Path] = {}
        self._worktrees = worktrees.expanduser().resolve() if worktrees else None
        self._locks: dict[Path, asyncio.Lock] = {}
        for path in paths:
            top = top_of(Path(path).expanduser().resolve(strict=True))
            if top is None:
                raise ValueError(f"{path} lies in no git repository.")
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
        """What the given repositories are called."""
        return list(self._given)

    def is_given(self, top: Path) -> bool:
        """Whether a folder is the top of a given repository."""
        return top in self._given.values()

    def place_of_worktrees(self, repository: Repository) -> Path:
        """The folder in which new worktrees of a repository are made; nowhere else are any."""
        main = repository.folders.common.parent
        return (
            self._worktrees / main.name
            if self._worktrees
            else main.parent / f"{main.name}.worktrees"
        )

    def lock(self, repository: Repository) -> asyncio.Lock:
        """What those hold who change a repository."""
        return self._locks.setdefault(repository.folders.common, asyncio.Lock())

    async def open(self, word: str | None, *, deep: bool = False) -> Repository:
        """The repository that a caller means: by its name, its path, or a path inside; the only one
        where there is no word.

        `deep` is for what looks at its work tree or changes it: git then goes by the index, and
        looks into submodules. Raises ToolError for one that was not given, and for one that leads
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
        """The configurations of all submodules that are there, and of theirs."""
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
                    raise ToolError(
                        "The repository is too large for its submodules to be looked through."
                    )
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
        """The submodules at these paths, where they are there.

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
                raise ToolError(f"Which repository? There is {', '.join(map(line, self._given))}.")
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
            # Before anything of it is read: is it a place at which worktrees of a given repository
            # are made?
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
        """Whether a folder is a worktree of a given repository, at the place where such are
        made.
        """
        place = (
            self._worktrees / main.name
            if self._worktrees
            else main.parent / f"{main.name}.worktrees"
        )
        return main in self._given.values() and top.is_relative_to(place)

    def _unknown(self, word: str) -> ToolError:
        return ToolError(
            f"{line(word)} is not one of the repositories of this server. It has "
            f"{', '.join(map(line, self._given))}."
        )


def top_of(path: Path) -> Path | None:
    """The nearest folder from a path upwards that has a `.git`; None if there is none, and for
    what lies in a git folder.
    """
    for folder in [path, *path.parents]:
        if folder.name.lower() == ".git":
            return None
        if os.path.lexists(folder / ".git"):
            return folder
    return None


def folders_of(top: Path, given: Iterable[Path]) -> RepositoryPaths:
    """The git folders of a repository.

    Raises ToolError where its `.git` leads to one that does not lead back or is not given.
    """
    pointer = top / ".git"
    mode = pointer.lstat().st_mode
    if stat.S_ISDIR(mode):
        if os.path.lexists(pointer / "commondir"):
            raise ToolError(
                f"{line(top.name)}/.git says that most of it lies elsewhere (commondir), and is "
                "not opened."
            )
        return RepositoryPaths(top, pointer, pointer)
    if not stat.S_ISREG(mode):
        raise ToolError(f"{line(top.name)}/.git is a link, and is not followed.")
    target = _pointed(pointer, "gitdir: ")
    if target is None or not target.is_dir():
        raise ToolError(f"{line(top.name)}/.git leads nowhere.")
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
        )  # a submodule of a given repository, or a git folder apart within one
    raise ToolError(
        f"{line(top.name)}/.git leads to a folder that is not given, or does not lead back, and "
        "is not followed."
    )


def _leads(file: Path, wanted: Path) -> bool:
    found = _pointed(file, "")
    return found is not None and found == wanted.resolve()


def _pointed(file: Path, prefix: str) -> Path | None:
    """Where a file of one line points to."""
    try:
        if not stat.S_ISREG(file.lstat().st_mode) or file.lstat().st_size > _MOST_POINTER:
            return None
        text = os.fsdecode(file.read_bytes()).rstrip("\r\n")
        if not text.startswith(prefix) or "\0" in text:
            return None
        return Path(file.parent, text.removeprefix(prefix)).resolve()
    except OSError:
        return None
