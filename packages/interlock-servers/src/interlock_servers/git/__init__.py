"""Git server: reads and changes the repositories that were configured. Hooks are never run.

`interlock serve git REPOSITORY...` runs it. Without arguments INTERLOCK_GIT_REPOSITORIES names the
repositories; the default is the repository of the current folder. INTERLOCK_GIT_WORKTREES is the
folder for new worktrees, and INTERLOCK_GIT_AUTHOR the author of commits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import QuestionSettings, Server, ServerInfo, ToolAnnotations, settings_of

from .branches import git_branches, git_create_branch, git_delete_branch, git_switch
from .history import git_blame, git_log, git_read_file, git_search, git_search_history
from .limits import PREFIX, GitLimits
from .repositories import VARIABLE, Repositories
from .resources import add_library
from .runner import Git
from .staging import git_add, git_commit, git_restore, git_unstage
from .stashes import git_apply_stash, git_drop_stash, git_show_stash, git_stash, git_stashes
from .status import git_diff, git_show, git_status
from .worktrees import git_add_worktree, git_remove_worktree, git_worktrees

WORKTREES = "INTERLOCK_GIT_WORKTREES"
AUTHOR = "INTERLOCK_GIT_AUTHOR"
INSTRUCTIONS = (
    "Start with git_status. Paths are relative to the top of a repository. Revisions are "
    "branches, tags, commit ids or HEAD~2. Long results come in pages: call again with "
    "`cursor`. Tools that delete or discard something ask the user first. Hooks are "
    "never run."
)
_READS: tuple[tuple[Callable[..., Any], str], ...] = (
    (git_status, "Status"),
    (git_diff, "Differences"),
    (git_log, "Log"),
    (git_show, "Show a commit"),
    (git_read_file, "Read a file at a revision"),
    (git_blame, "Who wrote a line"),
    (git_search, "Search files"),
    (git_search_history, "Search the history for a text"),
    (git_branches, "Branches"),
    (git_worktrees, "Worktrees"),
    (git_stashes, "Stashes"),
    (git_show_stash, "Show a stash"),
)
_ADDS: tuple[tuple[Callable[..., Any], str, bool], ...] = (  # and whether the tool is idempotent
    (git_add, "Stage files", True),
    (git_commit, "Commit", False),
    (git_create_branch, "Create a branch", False),
    (git_switch, "Switch to a branch", True),
    (git_add_worktree, "Add a worktree", False),
    (git_stash, "Stash changes", False),
    (git_apply_stash, "Apply a stash", False),
)
_LOSES: tuple[tuple[Callable[..., Any], str, bool], ...] = (
    (git_unstage, "Unstage files", True),
    (git_restore, "Restore files", True),
    (git_delete_branch, "Delete a branch", False),
    (git_remove_worktree, "Remove a worktree", False),
    (git_drop_stash, "Drop a stash", False),
)


def git_server(
    *repositories: str | os.PathLike[str],
    worktrees: str | os.PathLike[str] | None = None,
    author: str | None = None,
    limits: GitLimits | None = None,
    suspend: bool = True,
) -> Server:
    """Return a server for the repositories at these paths, which may be paths inside repositories.

    `worktrees` is the folder for new worktrees, by default beside each repository; `author` ("Name
    <address>") is the author of commits; `limits` default to those of the environment; `suspend` is
    as for Server. Raises ValueError or OSError for a path that is not in a repository, and
    ValueError for an invalid limit in the environment.
    """
    limits = limits or settings_of(GitLimits, PREFIX)
    paths = [os.fspath(one) for one in repositories]
    given = Repositories(paths, Path(worktrees) if worktrees else None, Git(limits=limits), author)

    @asynccontextmanager
    async def lifespan(made: Server) -> AsyncIterator[Repositories]:
        yield given

    made = Server(
        "git",
        "1.0.0",
        info=ServerInfo(title="Git", description="Read git repositories and work in them."),
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        questions=QuestionSettings(suspend=suspend),
    )
    for tool, title in _READS:
        made.add_tool(
            tool,
            title=title,
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            timeout=limits.call,
        )
    for tools, loses in ((_ADDS, False), (_LOSES, True)):
        for tool, title, again in tools:
            hints = ToolAnnotations(
                read_only_hint=False,
                destructive_hint=loses,
                idempotent_hint=again,
                open_world_hint=False,
            )
            made.add_tool(tool, title=title, annotations=hints, timeout=limits.call)
    add_library(made, given)
    return made


def server_of(*repositories: str) -> Server:
    """Return the server for the command line, for the environment, or for the repository of the
    current folder.

    Raises ValueError or OSError for a path that is not in a repository.
    """
    named: Iterable[str] = repositories or filter(
        None, os.environ.get(VARIABLE, "").split(os.pathsep)
    )
    return git_server(
        *(list(named) or ["."]),
        worktrees=os.environ.get(WORKTREES) or None,
        author=os.environ.get(AUTHOR) or None,
    )


server: Server  # created on demand, so that importing this module reads no folder


def __getattr__(name: str) -> Server:
    """The `server` for the repositories of the environment, or the one of the current folder."""
    if name == "server":
        return server_of()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if __name__ == "__main__":
    server_of(*sys.argv[1:]).run()
