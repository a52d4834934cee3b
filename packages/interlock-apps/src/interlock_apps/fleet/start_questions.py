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
            Warned(kind="folder", words="The command runs in this folder.", where=entry.shown_cwd)
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


def facts(question: StartQuestion) -> list[str]:
    """What else a person should know before a yes, one sentence each; not yet made visible."""
    found = [f"from {question.source}"] if question.source else []
    if question.variables:
        found.append(f"variables: {', '.join(question.variables)}")
    if question.trusted:
        found.append("its statements about its tools are trusted")
    if question.roots:
        found.append(f"it may be told of {', '.join(question.roots)}")
    if question.runs_code:
        found.append("it runs as you, and can do what you can")
    return found


def _in_the_open(entry: Entry) -> list[Warned]:
    """The warning that secrets go over plain http to another machine, where they do."""
    parts = urlsplit(entry.url)
    if parts.scheme != "http" or is_here(parts.hostname or ""):
        return []
    secret = [
        name
        for name, value in entry.headers.items()
        if is_secretive(name) or _was_filled_in(entry, f"headers.{name}", value)
    ]
    if _was_filled_in(entry, "url", entry.url):
        secret.append("URL")
    if not secret:
        return []
    words = "Secrets are sent over plain http: everybody on the way can read them. Use https."
    return [Warned(kind="plain", words=words, where=visible_line(", ".join(secret)))]


def _was_filled_in(entry: Entry, place: str, value: str) -> bool:
    """Whether a text holds the value of a variable, or a secret."""
    origin = entry.origins.get(place)
    masked = origin is not None and origin.masked != value
    return masked or any(secret in value for secret in entry.secrets if secret)
