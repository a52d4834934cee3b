"""May a configured server be started, or reached? The question to the person, and what a yes to it covers."""

from __future__ import annotations

from urllib.parse import urlsplit

from interlock.addresses import is_here
from interlock.configs import Entry
from interlock.redaction import is_secretive
from interlock.untrusted.invisible import visible_line

from . import threat_scan
from .questions import StartQuestion, Warned


def approval_of(entry: Entry) -> str:
    """What the person approves when a server may be started: a text that changes with any of it."""
    return "\n".join((entry.digest, "trusted" if entry.trusted else "", *entry.roots))


def start_question(id: str, entry: Entry) -> StartQuestion:
    """The question whether a server may be started, or reached (`SEC-17`); `id` is the question's own."""
    warnings: list[Warned] = []
    if entry.shown_cwd:
        warnings.append(
            Warned(kind="folder", words="The command is run in this folder.", where=entry.shown_cwd)
        )
    warnings += threat_scan.of_command(entry.command)
    warnings += _in_the_open(entry)
    return StartQuestion(
        id=id,
        server=entry.id,
        command=entry.shown,
        source=entry.source,
        trusted=entry.trusted,
        roots=entry.roots,
        variables=tuple(dict.fromkeys([*entry.shown_env, *entry.variables])),
        runs_code=bool(entry.command),
        warnings=tuple(warnings),
    )


def facts(question: StartQuestion) -> list[str]:
    """What else a person should know before a yes, one sentence each; not yet made visible."""
    found = [f"from {question.source}"] if question.source else []
    if question.variables:
        found.append(f"variables: {', '.join(question.variables)}")
    if question.trusted:
        found.append("what it says of its tools is believed")
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
