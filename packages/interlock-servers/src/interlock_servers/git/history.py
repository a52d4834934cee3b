"""History tools: log, blame and search."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line
from interlock.untrusted.invisible import visible

from . import commits
from .arguments import (
    AnyPaths,
    Cursor,
    PageCursor,
    Path,
    Revision,
    Text,
    cursor_of,
    inside,
    phrase,
    place_of,
    read,
)
from .commits import commits_in, commits_of, line_of
from .dates import When, moment
from .repositories import Repositories, Repository
from .results import Blame, BlamedLines, FileText, GrepMatch, GrepMatches, Log
from .runner import GitResult

MOST_HITS = 100
MOST_BLAMED = 1_000  # lines
MOST_FILE = 48 * 1024  # characters of a file in one answer
MOST_TEXT = 500  # characters of a matching line
CHUNK = 2_000  # commits searched at a time
LISTED = 100_000  # commits listed at a time
_MOST_GREP = 8 * 1024 * 1024
Page = Annotated[int, Meta(ge=1, le=200)]
Number = Annotated[int, Meta(ge=1, le=100_000_000)]


async def git_log(
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
    author: Text | None = None,
    grep: Text | None = None,
    paths: AnyPaths | None = None,
    since: When | None = None,
    until: When | None = None,
    limit: Page = 30,
    cursor: Cursor | None = None,
) -> ToolResult[Log]:
    """The commits that lead to a revision, the newest first.

    Args:
        author: only those whose author's name or address holds this text, whatever its case.
        grep: only those whose message holds this text, whatever its case.
        paths: only those that change one of these files or folders.
        since: only those made on this day or later, or from this time on: 2026-01-31,
            2026-01-31T10:00:00+02:00, yesterday, 2 weeks ago.
        until: only those made up to this day or time.
        cursor: the `next` of the page before, with the same arguments otherwise.
    """
    opened = await ctx.lifespan_state.open(repository)
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    if cursor is not None and len(place.revisions) != 1:
        raise ToolError("This cursor belongs to another call.")
    filters = [f"--author={phrase(author, 'author')}"] if author else []
    filters += [f"--grep={phrase(grep, 'text')}"] if grep else []
    filters += [f"--max-age={moment(since)}"] if since else []
    filters += [f"--min-age={moment(until, end=True)}"] if until else []
    where = [*map(inside, paths or ())]
    if not place.revisions and (
        filters or where
    ):  # the first commit is not necessarily among those listed
        place.revisions = [await opened.object_of(revision)]

    async def listed(tip: str) -> GitResult:
        skipped = [
            "--fixed-strings",
            "--regexp-ignore-case",
            f"--skip={place.skip}",
            f"--max-count={limit + 1}",
        ]
        return await opened.ask(
            "log", *skipped, *filters, *commits.OUTPUT, "--end-of-options", tip, "--", *where
        )

    ended = await (
        listed(place.revisions[0]) if place.revisions else opened.run_at(revision, listed)
    )
    found = commits_in(ended.output)
    if ended.cut and not found:
        raise ToolError("The commit is too large to show.")
    log = Log(found[:limit])
    if ended.cut or len(found) > limit:
        log.next = cursor_of(
            PageCursor(place.revisions or [found[0].id], place.skip + len(log.commits))
        )
    return ToolResult(log, _words(log, "There is no such commit."))


async def git_search_history(
    text: Text,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
    paths: AnyPaths | None = None,
    limit: Page = 20,
    commits_to_look_at: Annotated[int, Meta(ge=1, le=1_000_000)] = 20_000,
    cursor: Cursor | None = None,
) -> ToolResult[Log]:
    """The commits that added or removed a text, the newest first: those after which it occurs more
    or less often in a file.

    Args:
        text: as it stands, with its case.
        paths: look only at these files or folders.
        commits_to_look_at: end after so many; `next` then leads on, also where nothing was found
            yet.
        cursor: the `next` of the page before.
    """
    wanted = phrase(text, "text")
    where = [*map(inside, paths or ())]
    opened = await ctx.lifespan_state.open(repository)
    place = await _place(opened, revision, cursor)
    tip = place.revisions[0]
    total = int(read((await opened.ask("rev-list", "--count", tip, "--", *where)).output))
    end = min(total, place.skip + commits_to_look_at)
    found: list[str] = []
    at = place.skip
    async for ids in _chunks(opened, tip, where, at, end):
        ctx.progress(at - place.skip, end - place.skip, f"{at} of {total} commits")
        hits = await _changing(opened, ids, wanted, where)
        if len(found) + len(hits) > limit:  # continue right after the last one that fits
            hits = hits[: limit - len(found)]
            at = at + ids.index((found + hits)[-1]) + 1 if hits else at
            found = found + hits
            break
        at = at + len(ids)
        found = found + hits
    log = Log(
        await commits_of(opened, found) if found else [],
        cursor_of(PageCursor([tip], at)) if at < total else None,
        at,
    )
    return ToolResult(
        log,
        _words(log, f"None of the {at - place.skip} searched commits added or removed it."),
    )


async def _chunks(
    repository: Repository, tip: str, where: Sequence[str], begin: int, end: int
) -> AsyncIterator[list[str]]:
    """The commits that lead to a commit, from one position to another, in chunks.

    Many are listed at once, because each listing repeats those before the position.
    """
    at = begin
    while at < end:
        ended = await repository.ask(
            "rev-list", f"--skip={at}", f"--max-count={min(LISTED, end - at)}", tip, "--", *where
        )
        ids = read(ended.output).split()
        for n in range(0, len(ids), CHUNK):
            yield ids[n : n + CHUNK]
        at += len(ids) or end


async def _changing(
    repository: Repository, ids: Sequence[str], text: str, where: Sequence[str]
) -> list[str]:
    """The commits among these that change how often a text occurs."""
    ended = await repository.ask(
        "diff-tree",
        "--stdin",
        "-r",
        "--root",
        "--name-only",
        "-z",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
        f"-S{text}",
        "--",
        *where,
        feed="".join(f"{one}\n" for one in ids).encode(),
    )
    known = set(ids)
    return [one for one in dict.fromkeys(read(ended.output).split("\0")) if one in known]


async def git_read_file(
    path: Path,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
    first: Number = 1,
    last: Number | None = None,
) -> ToolResult[FileText]:
    """A text file as it is at a revision; of a link where it leads to.

    A long one is cut, and `next` says where it goes on.

    Args:
        first: the first line to read.
        last: the last one.
    """
    opened = await ctx.lifespan_state.open(repository)
    commit = await opened.object_of(revision)
    wanted = inside(path)
    blob, size = await blob_at(opened, commit, wanted)
    if size > opened.limits.file:
        raise ToolError(
            f"{line(path)} has {size} bytes in that revision; the limit is {opened.limits.file}."
        )
    data = (await opened.ask("cat-file", "blob", blob)).output
    if b"\0" in data:
        raise ToolError(
            f"{line(path)} is not text in that revision. Read its bytes as a resource of "
            "this server."
        )
    lines = read(data).split("\n")
    if not lines[-1]:
        lines.pop()
    if first > max(1, len(lines)) or (last is not None and last < first):
        raise ToolError(
            f"{line(path)} has {len(lines)} lines in that revision. Ask for lines within "
            "that range, the first number first."
        )
    kept = list[str]()
    room = MOST_FILE
    for text in lines[first - 1 : last]:
        room -= len(text) + 1
        if room < 0 and kept:
            break
        kept.append(text[:MOST_FILE])
    end = first - 1 + len(kept)
    found = FileText(
        wanted,
        commit,
        size,
        len(lines),
        first,
        end,
        end + 1 if end < min(len(lines), last or len(lines)) else None,
    )
    return ToolResult(found, visible("\n".join(one.removesuffix("\r") for one in kept)))


async def git_blame(
    path: Path,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
    first: Number = 1,
    last: Number | None = None,
) -> ToolResult[Blame]:
    """Who wrote which lines of a file last, as it is at a revision.

    Args:
        first: the first line to look at.
        last: the last one; 200 lines without it, and 1,000 at the most.
    """
    opened = await ctx.lifespan_state.open(repository)
    commit = await opened.object_of(revision)
    _, size = await blob_at(opened, commit, inside(path))
    if size > opened.limits.blamed:
        raise ToolError(
            f"{line(path)} has more than {opened.limits.blamed} bytes, which is too large "
            "for blame."
        )
    last = last if last is not None else first + 199
    if not first <= last < first + MOST_BLAMED:
        raise ToolError(f"Ask for at most {MOST_BLAMED} lines, the first number first.")
    # Always at a commit: in the work tree git would follow a folder that has become a link.
    ended = await opened.ask(
        "blame",
        "--porcelain",
        "--no-textconv",
        "--root",
        f"-L{first},{last}",
        commit,
        "--",
        inside(path),
        fine=(0, 128),
    )
    if ended.code:
        raise ToolError(
            f"{line(path)} has fewer lines, or cannot be blamed: "
            f"{line(ended.errors.removeprefix('fatal: '))}"
        )
    parts = _blamed(ended.output)
    count = sum(len(part.lines) for part in parts)
    more = count == last - first + 1 and last < read(
        (await opened.ask("cat-file", "blob", f"{commit}:{inside(path)}")).output
    ).count("\n")
    blame = Blame(inside(path), commit, parts, last + 1 if more else None)
    lines = [
        f"{number:>5} {part.commit[:12]} {part.date} {line(part.author, 20)}: {visible(text)}"
        for part in parts
        for number, text in enumerate(part.lines, part.first)
    ]
    return ToolResult(blame, "\n".join(lines))


def _blamed(output: bytes) -> list[BlamedLines]:
    """Parse `git blame --porcelain`, which describes a commit only at its first occurrence."""
    known: dict[str, tuple[str, str, str]] = {}
    parts: list[BlamedLines] = []
    commit = ""
    number = 0
    said_of = dict[str, str]()
    for text in read(output).split("\n"):
        if text.startswith("\t"):
            if said_of.get("author") is not None:
                known[commit] = (
                    said_of["author"],
                    _day(said_of.get("author-time", "0")),
                    said_of.get("summary", ""),
                )
            if (
                not parts
                or parts[-1].commit != commit
                or parts[-1].first + len(parts[-1].lines) != number
            ):
                parts.append(BlamedLines(commit, *known[commit], number, []))
            parts[-1].lines.append(text[1:].removesuffix("\r")[:MOST_TEXT])
            commit = ""
        elif not commit:
            commit = text.partition(" ")[0]
            said_of = {}
            number = int(text.split(" ")[2]) if commit else 0
        else:
            key, _, value = text.partition(" ")
            said_of[key] = value[:MOST_TEXT]
    return parts


def _day(seconds: str) -> str:
    try:
        return datetime.fromtimestamp(int(seconds), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


async def git_search(
    text: Text,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
    staged: bool = False,
    regex: bool = False,
    ignore_case: bool = False,
    paths: AnyPaths | None = None,
    limit: Annotated[int, Meta(ge=1, le=500)] = MOST_HITS,
    cursor: Cursor | None = None,
) -> ToolResult[GrepMatches]:
    """The lines that hold a text, in the files of a revision or of the index; files that are no
    text are left out.

    Args:
        staged: search what is in the index, in place of a revision.
        regex: the text is a POSIX extended regular expression.
        paths: only these files or folders.
        cursor: the `next` of the page before, with the same arguments otherwise.
    """
    wanted = phrase(text, "text")
    opened = await ctx.lifespan_state.open(repository)
    place = (
        place_of(cursor)
        if cursor is not None
        else PageCursor([] if staged else [await opened.object_of(revision)], 0)
    )
    if len(place.revisions) != (not staged):
        raise ToolError("This cursor belongs to another search.")
    # Never in the work tree: git would read through a folder that has become a link, which could
    # lead anywhere.
    how = [
        "--extended-regexp" if regex else "--fixed-strings",
        *["--ignore-case"] * ignore_case,
        *["--cached"] * staged,
    ]
    ended = await opened.ask(
        "grep",
        "-n",
        "-I",
        "-z",
        "--full-name",
        "--no-color",
        "--no-textconv",
        "--no-recurse-submodules",
        "--no-column",
        *how,
        "-e",
        wanted,
        *place.revisions,
        "--",
        *map(inside, paths or ()),
        most=_MOST_GREP,
        fine=(0, 1),
    )
    prefix = "" if staged else f"{place.revisions[0]}:"
    found = _hits(ended.output, prefix, place.skip + limit + 1)[place.skip :]
    hits = GrepMatches("index" if staged else place.revisions[0], found[:limit])
    if len(found) > limit:
        hits.next = cursor_of(PageCursor(place.revisions, place.skip + limit))
    elif ended.cut:
        raise ToolError("Too many lines match. Search for a longer text, or in fewer paths.")
    lines = [f"{line(hit.path)}:{hit.line}: {visible(hit.text)}" for hit in hits.hits] or [
        "There are no matches."
    ]
    return ToolResult(
        hits,
        "\n".join(
            [*lines, *([f"... and more: continue with cursor {hits.next}"] if hits.next else [])]
        ),
    )


def _hits(output: bytes, prefix: str, most: int) -> list[GrepMatch]:
    """Parse `git grep -n -z`: a path and NUL, a number and NUL, and the text of the line."""
    found: list[GrepMatch] = []
    at = 0
    while len(found) < most:
        path_end = output.find(b"\0", at)
        number_end = output.find(b"\0", path_end + 1)
        end = output.find(b"\n", number_end + 1)
        if min(path_end, number_end, end) < 0:
            break
        path = read(output[at:path_end]).removeprefix(prefix)
        found.append(
            GrepMatch(
                path,
                int(output[path_end + 1 : number_end]),
                read(output[number_end + 1 : end]).removesuffix("\r")[:MOST_TEXT],
            )
        )
        at = end + 1
    return found


async def blob_at(repository: Repository, commit: str, path: str) -> tuple[str, int]:
    """The blob of a file at a commit, and its size in bytes.

    Raises ToolError if there is no such file.
    """
    ended = await repository.ask("ls-tree", "-z", "--full-tree", "--long", commit, "--", path)
    for entry in read(ended.output).split("\0"):
        about, _, name = entry.partition("\t")
        if name == path and about.split()[1:2] == ["blob"]:
            _, _, id_, size = about.split()
            if size.isdecimal():
                return id_, int(size)
            raise ToolError(
                f"The contents of {line(path)} at {commit[:12]} are not in this repository."
            )
    raise ToolError(f"There is no file {line(path)} at {commit[:12]}.")


async def _place(repository: Repository, revision: str, cursor: str | None) -> PageCursor:
    place = (
        place_of(cursor)
        if cursor is not None
        else PageCursor([await repository.object_of(revision)], 0)
    )
    if len(place.revisions) != 1:
        raise ToolError("This cursor belongs to another call.")
    return place


def _words(log: Log, nothing: str) -> str:
    more = [f"... and more: continue with cursor {log.next}"] if log.next else []
    return "\n".join([*(map(line_of, log.commits) if log.commits else [nothing]), *more])
