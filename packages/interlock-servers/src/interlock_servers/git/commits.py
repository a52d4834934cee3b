"""Parses the commits in git's output."""

from __future__ import annotations

from collections.abc import Sequence

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

from .arguments import read
from .repositories import Repository
from .results import Commit

# NUL ends each field and each commit: git never prints one inside a commit's text.
FORMAT = "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s"
FIELDS = 7
_MOST_SUBJECT = 500
_MOST_NAME = 200
OUTPUT = (
    "-z",
    "--no-color",
    "--no-notes",
    "--no-show-signature",
    "--no-patch",
    "--decorate=short",
    FORMAT,
)


def commits_in(output: bytes) -> list[Commit]:
    """The commits in an output of that format; a truncated commit at its end is left out."""
    fields = read(output).split("\0")
    return [commit_in(fields[n : n + FIELDS]) for n in range(0, len(fields) - FIELDS, FIELDS)]


def commit_in(fields: Sequence[str]) -> Commit:
    """Build a commit from its fields."""
    id_, parents, author, email, when, refs, subject = fields
    names = refs.split(", ") if refs else []
    return Commit(
        id_,
        parents.split(),
        author[:_MOST_NAME],
        email[:_MOST_NAME],
        when,
        subject[:_MOST_SUBJECT],
        names,
    )


async def commits_of(repository: Repository, ids: Sequence[str]) -> list[Commit]:
    """Read commits by their ids, in this order. Raises ToolError."""
    ended = await repository.ask(
        "log",
        "--no-walk=unsorted",
        "--stdin",
        *OUTPUT,
        feed="".join(f"{one}\n" for one in ids).encode(),
    )
    found = commits_in(ended.output)
    if not found and ids:
        raise ToolError("The commit is too large to show.")
    return found


def line_of(commit: Commit) -> str:
    """A commit in one line."""
    refs = f" ({line(', '.join(commit.refs))})" if commit.refs else ""
    return (
        f"{commit.id[:12]} {commit.date[:10]} {line(commit.author, 60)}: "
        f"{line(commit.subject)}{refs}"
    )
