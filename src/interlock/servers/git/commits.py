"""Commits as git lists them, read into data."""

from __future__ import annotations

from collections.abc import Sequence

from interlock import ToolError

from .places import Repository
from .records import Commit
from .words import line, read

# NUL ends each field and each commit: nothing in a commit can hold one where git prints it.
_FORMAT = "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%s"
_FIELDS = 7
_MOST_SUBJECT = 500
_MOST_NAME = 200
OUTPUT = ("-z", "--no-color", "--no-notes", "--no-show-signature", "--no-patch", "--decorate=short", _FORMAT)


def commits_in(output: bytes) -> list[Commit]:
    """The commits of an output in that format; what is cut off at its end is left out."""
    fields = read(output).split("\0")
    found = []
    for n in range(0, len(fields) - _FIELDS, _FIELDS):
        id_, parents, author, email, when, refs, subject = fields[n : n + _FIELDS]
        found.append(
            Commit(
                id_,
                parents.split(),
                author[:_MOST_NAME],
                email[:_MOST_NAME],
                when,
                subject[:_MOST_SUBJECT],
                refs.split(", ") if refs else [],
            )
        )
    return found


async def commits_of(repository: Repository, ids: Sequence[str]) -> list[Commit]:
    """These commits, in this order. Raises ToolError."""
    ended = await repository.ask("log", "--no-walk=unsorted", "--stdin", *OUTPUT, feed="".join(f"{one}\n" for one in ids).encode())
    found = commits_in(ended.output)
    if not found and ids:
        raise ToolError("The commit is too large to be shown.")
    return found


def line_of(commit: Commit) -> str:
    """A commit in one line."""
    refs = f" ({line(', '.join(commit.refs))})" if commit.refs else ""
    return f"{commit.id[:12]} {commit.date[:10]} {line(commit.author, 60)}: {line(commit.subject)}{refs}"
