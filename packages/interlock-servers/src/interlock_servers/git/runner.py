"""Runs git without a shell, in a clean environment, with limits on time, memory and output."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from interlock import ToolError
from interlock.caches import BoundedCache
from interlock.untrusted.invisible import one_line as line

from ..processes import CHUNK, Process, read_output, running
from .arguments import read
from .limits import GitLimits
from .output import (
    OnProgress,
    Preamble,
    character_boundary,
    read_errors,
    skip_output,
    split_preamble,
)

NEEDED = (2, 36)  # the first git whose `worktree list` has -z; GIT_CONFIG_GLOBAL came with 2.32
_MOST_KNOWN = 64  # configurations and indexes whose analysis is cached
MOST_AT_ONCE = "512m"  # in one allocation: an object that claims to be larger is not unpacked
GRACE = 2.0  # seconds for git to remove its lock files when it is stopped
ROOT = os.path.abspath(os.sep)  # git's current folder for commands without a repository

Settings = Sequence[tuple[str, str]]

# Settings that override the repository's own configuration. Overrides for names that a repository
# invents (filters, drivers) are added to each run: see `hostile_repositories.disarmed`.
_NOTHING = os.devnull
SETTINGS: Settings = (
    # programs: none are run
    ("core.hooksPath", _NOTHING),
    ("core.fsmonitor", "false"),
    ("core.editor", ":"),
    ("sequence.editor", ":"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("interactive.diffFilter", ""),
    ("gpg.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    # files elsewhere: none are read
    ("core.attributesFile", _NOTHING),
    ("diff.orderFile", _NOTHING),
    ("blame.ignoreRevsFile", ""),
    ("mailmap.file", _NOTHING),
    ("mailmap.blob", ""),
    ("commit.template", ""),
    ("init.templateDir", ""),
    # writing: no names that another system reads as `.git`
    ("core.protectHFS", "true"),
    ("core.protectNTFS", "true"),
    ("rerere.enabled", "false"),
    ("branch.autoSetupMerge", "false"),
    # sizes
    ("core.bigFileThreshold", "16m"),
    ("core.packedGitWindowSize", "32m"),
    ("core.packedGitLimit", "256m"),
    # output: in the form that is parsed here
    ("core.quotePath", "false"),
    ("color.ui", "false"),
    ("diff.noprefix", "false"),
    ("diff.mnemonicPrefix", "false"),
    ("diff.relative", "false"),
    ("diff.renames", "true"),
    ("log.showRoot", "true"),
    ("log.mailmap", "false"),
    ("status.relativePaths", "false"),
    ("grep.patternType", "default"),
    ("grep.column", "false"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("i18n.commitEncoding", "UTF-8"),
    ("checkout.guess", "false"),
    ("user.useConfigOnly", "true"),
)


class GitResult(NamedTuple):
    """A finished run of git: exit code, output (`cut` if there was more), and errors."""

    code: int
    output: bytes
    errors: str
    cut: bool


class OutputWindow(NamedTuple):
    """A part of git's output: its bytes, the digest of everything up to its end, its end, and
    whether there is more.

    `preamble` is the part before the output; if that was too long (`cut`), it is all there is.
    """

    data: bytes
    digest: str
    end: int
    more: bool
    preamble: bytes = b""
    cut: bool = False


class Git:
    """The git program of this machine."""

    def __init__(self, program: str | None = None, limits: GitLimits | None = None) -> None:
        """`program` is the path of git; by default git is searched for on first use."""
        self._program = program
        self.limits = limits or GitLimits()
        self._checked = False
        self._own: dict[str, str] | None = None
        self._excludes: str | None = None
        self.disarmed: BoundedCache[bytes, Settings] = BoundedCache(
            _MOST_KNOWN
        )  # by the digest of a configuration
        self.links: BoundedCache[bytes, tuple[str, ...]] = BoundedCache(
            _MOST_KNOWN
        )  # the submodules of an index, by its digest

    async def program(self) -> str:
        """The path of git. Raises ToolError if it is missing or too old."""
        if self._program is None:
            self._program = shutil.which("git", path=search_path())
        if self._program is None:
            raise ToolError(
                "This server needs git, which is not on the PATH. Install git "
                "(2.36 or later) and try again."
            )
        if not self._checked:
            try:
                async with self._briefly([self._program, "version"], environment()) as process:
                    said = await read_output(process, 1000)
            except OSError as bad:  # includes TimeoutError
                raise ToolError(
                    f"Git cannot be run: {bad.strerror or 'it does not answer'}."
                ) from None
            numbers = re.search(rb"(\d+)\.(\d+)", said)
            if numbers is None or (int(numbers[1]), int(numbers[2])) < NEEDED:
                raise ToolError(
                    f"This server needs git {NEEDED[0]}.{NEEDED[1]} or later; this is "
                    f"{line(read(said).strip()) or 'another program'}."
                )
            self._checked = True
        return self._program

    async def own(self, key: str) -> str | None:
        """A value in the configuration of the user who runs this server.

        The configuration is read once, and only a few of its keys are used.
        """
        if self._own is None:
            self._own = {}
            names = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "USERPROFILE", "APPDATA")
            env = {
                **environment(),
                **{name: os.environ[name] for name in names if name in os.environ},
            }
            for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "HOME"):
                if name not in os.environ:
                    del env[name]
            command = [await self.program(), "config", "--global", "--includes", "--null", "--list"]
            try:
                async with self._briefly(command, env) as process:
                    listed = read(await read_output(process, 1024 * 1024))
            except TimeoutError:
                raise ToolError(
                    "Git took too long to read the configuration of the user who runs this server."
                ) from None
            self._own = {
                name.lower(): value
                for name, _, value in (entry.partition("\n") for entry in listed.split("\0"))
            }
        return self._own.get(key)

    @asynccontextmanager
    async def _briefly(
        self, command: Sequence[str], env: Mapping[str, str]
    ) -> AsyncIterator[Process]:
        """Start a process that needs no repository. Raises TimeoutError."""
        async with (
            asyncio.timeout(self.limits.seconds),
            running(command, cwd=ROOT, env=env, memory=self.limits.memory, grace=GRACE) as process,
        ):
            yield process

    async def _excluded(self) -> str:
        """The user's own list of files to ignore; its path is determined once."""
        if self._excludes is None:
            self._excludes = await asyncio.to_thread(
                _ignored_by_the_person, await self.own("core.excludesfile")
            )
        return self._excludes

    async def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | str,
        settings: Settings = (),
        variables: Mapping[str, str] | None = None,
        feed: bytes | None = None,
        most: int | None = None,
        seconds: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> GitResult:
        """Run git to its end, or until it has written `most` bytes.

        `feed` is its input; `on_progress` receives its progress. Raises ToolError if it takes too
        long. A cancellation ends git and its child processes.
        """
        errors = bytearray()
        most = most or self.limits.output
        async with self._running(
            arguments, cwd, settings, variables, feed, seconds or self.limits.seconds
        ) as process:
            complaints = asyncio.ensure_future(read_errors(process, errors, on_progress))
            try:
                output = await read_output(process, most + 1)
                if len(output) > most:
                    return GitResult(0, output[:most], read(bytes(errors)), cut=True)
                await complaints
                return GitResult(await process.wait(), output, read(bytes(errors)), cut=False)
            finally:
                complaints.cancel()

    async def window(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path | str,
        settings: Settings = (),
        variables: Mapping[str, str] | None = None,
        skip: int = 0,
        most: int = 48 * 1024,
        digest: str = "",
        preamble: Preamble | None = None,
    ) -> OutputWindow:
        """A part of git's output, which ends at a line if possible; skipped output is not kept.

        With a `preamble`, `skip` counts from its end.

        Raises ToolError if the digest of the skipped output is not `digest`: it has changed.
        """
        errors = bytearray()
        head = b""
        begun = bytearray()
        async with self._running(
            arguments, cwd, settings, variables, None, self.limits.seconds
        ) as process:
            complaints = asyncio.ensure_future(read_errors(process, errors, None))
            try:
                if preamble is not None:
                    head, begun = await split_preamble(process, preamble, self.limits.output)
                    if len(head) > self.limits.output:
                        return OutputWindow(
                            b"", "", 0, more=True, preamble=head[: self.limits.output], cut=True
                        )
                seen = hashlib.sha256()
                kept = await skip_output(process, begun, skip, seen)
                if skip and seen.hexdigest() != digest:
                    raise ToolError(
                        "The data of this cursor has changed. Start again without a cursor."
                    )
                while len(kept) <= most and (chunk := await process.stdout.read(CHUNK)):
                    kept += chunk
                if len(kept) <= most:
                    await complaints
                    code = await process.wait()
                    if code not in (0, 1):
                        raise failed(code, read(bytes(errors)))
                    return OutputWindow(
                        bytes(kept), "", skip + len(kept), more=False, preamble=head
                    )
            finally:
                complaints.cancel()
        end = kept.rfind(b"\n", 0, most) + 1 or character_boundary(kept, most)
        seen.update(kept[:end])
        return OutputWindow(
            bytes(kept[:end]), seen.hexdigest(), skip + end, more=True, preamble=head
        )

    @asynccontextmanager
    async def _running(
        self,
        arguments: Sequence[str],
        cwd: Path | str,
        settings: Settings,
        variables: Mapping[str, str] | None,
        feed: bytes | None,
        seconds: float,
    ) -> AsyncIterator[Process]:
        program = await self.program()
        excludes = (("core.excludesFile", await self._excluded()),)
        env = {**environment((*SETTINGS, *excludes, *settings)), **(variables or {})}
        limit = asyncio.timeout(seconds)
        try:
            async with (
                limit,
                running(
                    [program, "--no-pager", *arguments],
                    cwd=cwd,
                    env=env,
                    feed=feed,
                    memory=self.limits.memory,
                    grace=GRACE,
                ) as process,
            ):
                yield process
        except TimeoutError:
            if not limit.expired():
                raise
            raise ToolError(
                f"Git took more than {seconds:g} seconds, and was stopped. Ask for less: "
                "give a path, a range or a later date."
            ) from None
        except OSError as bad:  # too many arguments for this platform, or the folder was removed
            raise ToolError(f"Git cannot be run: {bad.strerror or bad}.") from None


def failed(code: int, errors: str) -> ToolError:
    """The error for git's error messages, in words for the model."""
    lines = [
        found for found in errors.splitlines() if found.strip() and not found.startswith("hint:")
    ]
    said = "\n".join(
        line(found.removeprefix("fatal: ").removeprefix("error: "), 300) for found in lines[:12]
    )
    if code < 0:
        return ToolError(f"Git was ended by signal {-code}.{' ' + said if said else ''}")
    return ToolError(said or f"Git failed with exit code {code}.")


def _ignored_by_the_person(configured: str | None) -> str:
    if configured is None:
        configured = os.path.join(
            os.environ.get("XDG_CONFIG_HOME") or os.path.join("~", ".config"), "git", "ignore"
        )
    path = os.path.expanduser(configured)
    # A missing file may be created later; until then git runs without it.
    return (
        path
        if os.path.isabs(path) and (os.path.isfile(path) or not os.path.lexists(path))
        else _NOTHING
    )


def search_path() -> str:
    """PATH without relative folders: git runs inside the repository, whose programs must not be
    found.
    """
    return os.pathsep.join(
        one for one in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(one)
    )


def environment(settings: Settings = ()) -> dict[str, str]:
    """The whole environment of git: from the user's own only the paths of programs and temporary
    files.
    """
    kept = {
        name: os.environ[name]
        for name in ("SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
        if name in os.environ
    }
    given = {
        f"GIT_CONFIG_{what}_{n}": value
        for n, pair in enumerate(settings)
        for what, value in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {
        **kept,
        **given,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "PATH": search_path(),
        "HOME": _NOTHING,
        "XDG_CONFIG_HOME": _NOTHING,
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": _NOTHING,
        "GIT_CONFIG_GLOBAL": _NOTHING,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_PROTOCOL_FROM_USER": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "GIT_SSH_COMMAND": "false",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_PAGER": "cat",
        "GIT_TEMPLATE_DIR": "",
        "GIT_PROGRESS_DELAY": "0",
        "GIT_ALLOC_LIMIT": MOST_AT_ONCE,
    }
