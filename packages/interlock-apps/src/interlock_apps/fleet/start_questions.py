"""The question whether a server may be started, or reached, and what a yes to it covers."""

from __future__ import annotations

from interlock.configs import Entry, start_request

from .questions import StartQuestion, Warned


def start_question(id: str, entry: Entry) -> StartQuestion:
    """The question whether a server may be started, or reached (`SEC-17`); `id` is the question's
    own.
    """
    warnings: list[Warned] = []
    if entry.shown_cwd:
        warnings.append(
            Warned(kind="folder", words="The command is run in this folder.", where=entry.shown_cwd)
        )
    warnings += threat_scan.of_command(entry.command)
    warnings += _in_the_open(entry)
    return StartQuestion(
        id=id,
        server=request.server,
        command=request.command,
        source=request.source,
        trusted=request.trusted,
        roots=request.roots,
        variables=request.variables,
        runs_code=request.runs_code,
        warnings=tuple(
            Warned(kind=each.kind, words=each.words, where=each.where) for each in request.warnings
        ),
    )
