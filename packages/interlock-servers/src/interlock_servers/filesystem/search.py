"""Finds files by name and lines by content, with ripgrep where it is installed.

ripgrep only says where to look. It works with paths, so its output is never shown: each file that
it names is opened here, step by step, and the lines come from there.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as plain

from ..processes import blocking
from . import grep
from .limits import FilesystemLimits
from .reading import whole
from .resolve import PathNotFound, ResolvedPath, descend, without_bad_bytes
from .results import FolderEntries, LineMatch, LineMatches, entry_of
from .roots import CallProgress, CallRoots
from .walk import ExcludePatterns, GlobPattern, Walk, WalkedEntry

# where a child process finds inherited descriptors; not on every system
OPENED = "/proc/self/fd"
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MOST_LINE = 400  # characters of a line in a result


class TextQuery(NamedTuple):
    """A text search: plain text or a regular expression, which files, and lines of context."""

    text: str
    regex: bool = False
    ignore_case: bool = False
    glob: str | None = None
    context: int = 0
    hidden: bool = False
    without: ExcludePatterns | None = None

    @property
    def pattern(self) -> str:
        """The query as a regular expression."""
        return self.text if self.regex else re.escape(self.text)


def find_names(
    call_roots: CallRoots,
    place: ResolvedPath,
    pattern: str,
    kind: str | None,
    progress: CallProgress,
    *,
    hidden: bool,
    without: ExcludePatterns | None = None,
) -> FolderEntries:
    """Files and folders below a folder that match a glob. Raises ToolError."""
    fits = GlobPattern(pattern).fits
    limits = call_roots.limits
    fd = place.open_folder()
    found: list[WalkedEntry] = []
    try:
        walk = Walk(place.folder, limits, progress, hidden=hidden, without=without)
        for one in walk.below(fd):
            if fits(one.steps) and (kind is None or (kind == "folder") == one.is_folder):
                if len(found) >= limits.entries:
                    break
                found.append(one)
        else:
            return _names(call_roots, place, found, _reason(walk, progress))
        return _names(
            call_roots,
            place,
            found,
            f"there are more than {limits.entries}: send a narrower pattern",
        )
    finally:
        os.close(fd)


def _names(
    call_roots: CallRoots, place: ResolvedPath, found: list[WalkedEntry], reason: str | None
) -> FolderEntries:
    entries = [
        entry_of(
            without_bad_bytes(call_roots.shown(place.folder, (*place.parts, *one.steps))), one.stat
        )
        for one in found
    ]
    return FolderEntries(
        without_bad_bytes(call_roots.shown(place.folder, place.parts)),
        entries,
        reason is None,
        reason,
    )


def _reason(walk: Walk, progress: CallProgress) -> str | None:
    if progress.late:
        return "this took too long; search a smaller folder"
    return "some folders are too deep or too large" if walk.cut else None


class _Search:
    """A running search: the matches so far, and how a file adds to them."""

    def __init__(self, call_roots: CallRoots, wanted: TextQuery) -> None:
        self.call_roots = call_roots
        self.wanted = wanted
        self.most = 200
        self.hits: list[LineMatch] = []
        self.files = 0
        self.left_out = 0  # the number of files that were not searched
        self.why = ""  # why the first of them was not
        self.cut = False  # whether folders were left out

    def data(self, place: ResolvedPath) -> bytes | None:
        """The bytes of a file; None if it has vanished, is too large, or must not be read."""
        most = self.call_roots.limits.searched
        try:
            fd = place.open_file()
        except PathNotFound:
            return None
        except ToolError as bad:
            self.leave_out(str(bad))
            return None
        try:
            if os.fstat(fd).st_size <= most:
                return whole(fd, most, place.shown)
            self.leave_out(f"{plain(place.shown)} has more than {most:,} bytes.")
        except (ToolError, OSError) as bad:
            self.leave_out(str(bad))
        finally:
            os.close(fd)
        return None

    def leave_out(self, why: str) -> None:
        self.left_out += 1
        self.why = self.why or why

    def add(self, place: ResolvedPath, data: bytes, numbers: list[int]) -> bool:
        """Add lines of a file to the result; False once there are enough."""
        lines = data.decode("utf-8", "replace").split("\n")
        path = without_bad_bytes(self.call_roots.shown(place.folder, place.parts))
        self.files += bool(numbers)
        for number in numbers:
            if len(self.hits) >= self.most:
                return False
            if number <= len(lines):
                around = self.wanted.context
                before = lines[max(0, number - 1 - around) : number - 1]
                after = lines[number : number + around]
                self.hits.append(
                    LineMatch(
                        path,
                        number,
                        _cut(lines[number - 1]),
                        [*map(_cut, before)],
                        [*map(_cut, after)],
                    )
                )
        return True

    def result(self, reason: str | None) -> LineMatches:
        if reason is None and self.left_out:
            reason = f"{self.left_out} files were not searched. The first: {self.why}"
        if reason is None and self.cut:
            reason = "some folders are too deep or too large"
        return LineMatches(self.hits, self.files, reason is None, reason)


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _MOST_LINE else line[:_MOST_LINE] + "…"


def search_text(
    call_roots: CallRoots, place: ResolvedPath, wanted: TextQuery, progress: CallProgress
) -> LineMatches:
    """The matching lines in a file or below a folder. Raises ToolError."""
    if "\0" in wanted.text:
        raise ToolError("A search text cannot contain a NUL character.")
    found = place.stat()
    search = _Search(call_roots, wanted)
    if found is None:
        raise place.missing("file or folder")
    program = _program(wanted) if stat.S_ISDIR(found.st_mode) else None
    finder = (
        _by_process(wanted, progress, search.most, call_roots.limits.matching)
        if wanted.regex
        else contextlib.nullcontext(_literal(wanted, search.most))
    )
    with finder as find:
        if not stat.S_ISDIR(found.st_mode):
            place.check_file(found)
            data = search.data(place)
            enough = data is not None and not search.add(place, data, find(data))
            return search.result(f"there are more than {search.most}" if enough else None)
        files = (
            _walked(place, wanted, search, progress)
            if program is None
            else _asked(program, place, wanted, search, progress)
        )
        for n, one in enumerate(files):
            if n % 100 == 0:
                progress.report(
                    progress.count + n, None, f"{search.files} files with {len(search.hits)} lines"
                )
            data = search.data(one)
            if data is not None and not search.add(one, data, find(data)):
                return search.result(
                    f"there are more than {search.most}: send a narrower text or glob"
                )
    return search.result("this took too long; search a smaller folder" if progress.late else None)


def _program(wanted: TextQuery) -> str | None:
    """The path of ripgrep, if it is installed, can be started in an opened folder, and accepts this
    pattern: its syntax is similar to ours but not the same.
    """
    program = shutil.which("rg") if os.path.isdir(OPENED) else None
    if program is not None and wanted.regex:
        tried = [program, "--no-config", "--quiet", f"--regexp={wanted.text}", "--", os.devnull]
        with blocking(tried) as process:
            if process.wait() > 1:
                return None
    return program


def _walked(
    place: ResolvedPath, wanted: TextQuery, search: _Search, progress: CallProgress
) -> Iterator[ResolvedPath]:
    """The files below a folder, found by walking."""
    fits = GlobPattern(wanted.glob).fits if wanted.glob else None
    limits = search.call_roots.limits
    fd = place.open_folder()
    try:
        walk = Walk(place.folder, limits, progress, hidden=wanted.hidden, without=wanted.without)
        for found in walk.below(fd):
            if stat.S_ISREG(found.stat.st_mode) and (fits is None or fits(found.steps)):
                yield ResolvedPath(
                    place.folder,
                    (*place.parts, *found.steps),
                    found.parent,
                    "/".join(found.steps),
                    limits,
                )
        search.cut = walk.cut
    finally:
        os.close(fd)


def _asked(
    program: str, place: ResolvedPath, wanted: TextQuery, search: _Search, progress: CallProgress
) -> Iterator[ResolvedPath]:
    """The files below a folder that ripgrep names, each opened here by its path as it is now."""
    fits = GlobPattern(wanted.glob).fits if wanted.glob else None
    limits = search.call_roots.limits
    fd = place.open_folder()
    try:
        for name in _ripgrep(program, fd, wanted, limits, progress):
            steps = tuple(part for part in name.split("/") if part != ".")
            if len(steps) > limits.depth:
                search.cut = True
            elif wanted.without is not None and wanted.without.holds(steps):
                continue
            elif (fits is None or fits(steps)) and ".." not in steps:
                with (
                    contextlib.suppress(ToolError),
                    descend(
                        place.folder, (*place.parts, *steps), name, limits, follow=False
                    ) as found,
                ):
                    yield found
    finally:
        os.close(fd)


def _ripgrep(
    program: str, fd: int, wanted: TextQuery, limits: FilesystemLimits, progress: CallProgress
) -> Iterator[str]:
    """The names of the files that match, as ripgrep reports them, in order.

    The user's configuration of ripgrep is not read. ripgrep gets no limit of size or depth, so that
    the result can say which files are too large or too deep for this server.
    """
    options = [
        "--no-config",
        "--files-with-matches",
        "--null",
        "--no-messages",
        "--no-follow",
        "--no-ignore",
        "--sort=path",
        "--text",
        "--color=never",
        *(["--hidden"] if wanted.hidden else []),
        *(["--ignore-case"] if wanted.ignore_case else []),
        # ripgrep interprets plain names as this server does, so it can skip them; other exclusions
        # are applied here.
        *(
            f"--glob=!{one}"
            for one in (wanted.without.patterns if wanted.without else ())
            if _NAME.fullmatch(one)
        ),
        *([] if limits.mounts else ["--one-file-system"]),
        *([] if wanted.regex else ["--fixed-strings"]),
    ]
    # The folder is entered by its descriptor before the program starts. After `--regexp=` the text
    # cannot be taken for an option.
    with blocking(
        [program, *options, f"--regexp={wanted.text}", "--", "."],
        cwd=f"{OPENED}/{fd}",
        pass_fds=(fd,),
        env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
    ) as process:
        left = b""
        while chunk := process.read(lambda: _is_late(progress)):
            *names, left = (left + chunk).split(b"\0")
            yield from map(os.fsdecode, names)


def _is_late(progress: CallProgress) -> bool:
    """Whether the call's time is over. Raises CancelledError if the call was cancelled."""
    progress.report(progress.count, None, "searching")
    return progress.late


def _literal(wanted: TextQuery, most: int) -> Callable[[bytes], list[int]]:
    """A function that finds the lines that contain a literal text."""
    pattern = re.compile(wanted.pattern, re.IGNORECASE if wanted.ignore_case else 0)
    bare = wanted.text.encode("utf-8", "surrogatepass")

    def find(data: bytes) -> list[int]:
        return (
            []
            if not wanted.ignore_case and bare not in data
            else grep.answer(data, pattern, most + 1)
        )

    return find


def _why_ended(status: int) -> str:
    """Why the process that matches the pattern ended by itself."""
    if hasattr(signal, "SIGPROF") and status == -signal.SIGPROF:
        return (
            "This pattern takes too long. Send a simpler one: nested repetition such as (a+)+ is "
            "slow."
        )
    return "The search for this pattern failed."


@contextlib.contextmanager
def _by_process(
    wanted: TextQuery, progress: CallProgress, most: int, seconds: float
) -> Iterator[Callable[[bytes], list[int]]]:
    """A function that finds matching lines in a child process, which is killed after its time
    limit.

    Raises ToolError for other errors.
    """
    command = [sys.executable, "-I", "-S", grep.__file__]
    with blocking(command, fed=True) as process:

        def answer() -> bytes:
            line = b""
            while not line.endswith(b"\n"):
                chunk = process.read(lambda: _is_late(progress))
                if chunk is None:
                    raise ToolError("This pattern takes too long. Send a simpler one.")
                if not chunk:
                    raise ToolError(_why_ended(process.wait()))
                line += chunk
            return line

        def find(data: bytes) -> list[int]:
            process.write(len(data).to_bytes(8, "big"))
            process.write(data)
            return msgspec.json.decode(answer(), type=list[int])

        task = {
            "pattern": wanted.text,
            "ignore_case": wanted.ignore_case,
            "most": most + 1,
            "seconds": seconds,
        }
        process.write(json.dumps(task).encode() + b"\n")
        bad = msgspec.json.decode(answer(), type=str | None)
        if bad is not None:
            raise ToolError(f"This is not a regular expression: {bad}.")
        yield find
