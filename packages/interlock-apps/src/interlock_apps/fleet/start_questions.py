"""The question whether a configured server may be started or reached."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.configs import Entry, confinement_of, start_request

from .questions import StartQuestion, Warned


def start_question(id: str, entry: Entry, roots: Sequence[str] = ()) -> StartQuestion:
    """Return the question whether a server may be started or reached (`SEC-17`).

    Args:
        id: The id of the question.
        entry: The server.
        roots: Further folders that the person gives it as roots.
    """
    confinement = confinement_of(entry, roots)
    request = start_request(entry, confinement=confinement.words, unconfined=confinement.problem)
    return StartQuestion(
        id=id,
        server=request.server,
        command=request.command,
        source=request.source,
        trusted=request.trusted,
        roots=request.roots,
        variables=request.variables,
        runs_code=request.runs_code,
        confinement=request.confinement,
        warnings=tuple(
            Warned(kind=each.kind, words=each.words, where=each.where) for each in request.warnings
        ),
    )
