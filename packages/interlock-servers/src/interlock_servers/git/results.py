"""Results of the git server's tools."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Kind = Literal[
    "added", "modified", "deleted", "renamed", "copied", "type changed", "unmerged", "changed"
]
KINDS: dict[str, Kind] = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type changed",
    "U": "unmerged",
}


class ChangedFile(Struct, omit_defaults=True):
    """A file that differs; `old_path` is what it was called before."""

    path: str
    change: Kind
    old_path: str | None = None


class Status(Struct):
    """What is checked out, and what differs: staged for the next commit, changed since, in
    conflict, and not known to git.

    `complete` is false where there is more than is listed.
    """

    repository: str
    branch: str | None
    commit: str | None
    clean: bool
    upstream: str | None = None
    ahead: int | None = None
    behind: int | None = None
    staged: list[ChangedFile] = field(default_factory=list)
    unstaged: list[ChangedFile] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    complete: bool = True


class FileDiff(Struct, omit_defaults=True):
    """How a file differs. Lines are not counted for binary files."""

    path: str
    change: Kind
    added: int | None = None
    deleted: int | None = None
    old_path: str | None = None


class Diff(Struct):
    """Which files differ between two states.

    The patch is the text of the result, as far as `next` says that there is more of it.

    `old` and `new` are commits, "index" or "work tree"; `complete` says whether all files are
    listed.
    """

    old: str
    new: str
    files: list[FileDiff]
    added: int
    deleted: int
    complete: bool = True
    next: str | None = None


class Commit(Struct, omit_defaults=True):
    """A commit; times are ISO 8601. `refs` are the branches and tags that are at it."""

    id: str
    parents: list[str]
    author: str
    email: str
    date: str
    subject: str
    refs: list[str] = field(default_factory=list)


class Log(Struct):
    """Commits, the newest first; `next` is the cursor of the page after, `looked_at` how many
    commits a search has seen so far.
    """

    commits: list[Commit]
    next: str | None = None
    looked_at: int | None = None


class CommitDetails(Struct):
    """A commit with its whole message and the files that it changes as against its first parent;
    the patch is the text of the result.
    """

    commit: Commit
    committer: str
    committed: str
    message: str
    diff: Diff


class BlamedLines(Struct):
    """Consecutive lines from one commit. `first` is the number of the first line."""

    commit: str
    author: str
    date: str
    subject: str
    first: int
    lines: list[str]


class Blame(Struct):
    """Who wrote each line of a file at a commit. `next` is the line to continue at."""

    path: str
    commit: str
    parts: list[BlamedLines]
    next: int | None = None


class FileText(Struct):
    """Lines of a file as it is at a commit, which stand beside this; `size` is in bytes, of the
    whole file.

    `next` is the line at which to go on.
    """

    path: str
    commit: str
    size: int
    lines: int
    first: int
    last: int
    next: int | None = None


class GrepMatch(Struct):
    """A line that matches."""

    path: str
    line: int
    text: str


class GrepMatches(Struct):
    """Matching lines in the files of a commit or of the index."""

    searched: str
    hits: list[GrepMatch]
    next: str | None = None


class BranchInfo(Struct, omit_defaults=True):
    """A branch; `worktree` is where it is checked out."""

    name: str
    commit: str
    date: str
    subject: str
    current: bool = False
    upstream: str | None = None
    worktree: str | None = None


class Branches(Struct):
    """The branches, and the current one."""

    current: str | None
    branches: list[BranchInfo]
    next: str | None = None


class Worktree(Struct, omit_defaults=True):
    """A worktree. Its path names it as a repository, if it is `usable`."""

    path: str
    usable: bool
    branch: str | None = None
    commit: str | None = None
    locked: bool = False
    missing: bool = False


class Worktrees(Struct):
    """The worktrees of a repository, the main one first, and the folder for new ones."""

    worktrees: list[Worktree]
    place: str


class Stash(Struct):
    """A stash. `number` changes when others come and go, `commit` does not."""

    number: int
    commit: str
    date: str
    subject: str


class Stashes(Struct):
    """The stashes, newest first."""

    stashes: list[Stash]
    next: str | None = None


class ActionResult(Struct, omit_defaults=True):
    """The branch and commit that are checked out now, and the affected paths."""

    repository: str
    branch: str | None
    commit: str | None
    paths: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
