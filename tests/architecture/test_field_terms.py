"""Standard terms of the field: a search for one leads first to the file that implements it, and
words that were replaced by them do not come back.

The search is `git grep -n -i -w -E 'TERMs?'` over `packages/*/src`: files in the byte order of
their paths, whole words, case-insensitive, singular and plural, with a space or a hyphen between
the words of a term (a line break does not count). Names of modules in imports are not hits: they
lead to the file by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.source import Source, SourceTree

LIBRARY = "packages/interlock/src/interlock"
APPS = "packages/interlock-apps/src/interlock_apps"
ISSUER = "packages/interlock-issuer/src/interlock_issuer"
SERVERS = "packages/interlock-servers/src/interlock_servers"

IMPLEMENTED_IN = {
    "SSRF": f"{LIBRARY}/http11/safe_fetch.py",
    "DNS rebinding": f"{LIBRARY}/protocol/http.py",
    "path traversal": f"{SERVERS}/filesystem/resolve.py",
    "TOCTOU": f"{SERVERS}/filesystem/resolve.py",
    "rate limit": f"{ISSUER}/http/rate_limit.py",
    "heartbeat": f"{APPS}/fleet/hub/supervised_client.py",
    "lease": f"{LIBRARY}/store/vaults/leases.py",
    "compare-and-swap": f"{LIBRARY}/store/memory/records.py",
    "connection pool": f"{SERVERS}/database/postgres/pool.py",
    "prompt injection": f"{APPS}/fleet/threat_scan/__init__.py",
    "tool poisoning": f"{APPS}/fleet/threat_scan/__init__.py",
    "single flight": f"{LIBRARY}/auth/single_flight.py",
    "access log": f"{LIBRARY}/transport/http/access_log.py",
}
# Names that nobody could guess, with what replaced them.
REPLACED_NAMES = {
    "BoardBus": "TopicBus",
    "Errand": "AuthorizationRequest",
    "Guise": "TypeAdapter",
    "Knock": "ProbeResult",
    "Landing": "RedirectListener",
    "Mute": "NoAsker",
    "Recall": "LoadRegistration",
    "Roads": "HttpClients",
    "Sheet": "SchemaBuilder",
    "adrift": "dangling_relations",
    "errand_to": "authorization_request",
    "firm": "uncancellable",
    "guise": "adapter",
    "heed": "handle_response",
    "knock": "probe",
    "misfortune": "connection_error",
    "outdate": "invalidate",
    "unhurried": "pause_timeout",
    "untie": "break_cycles",
}
# Names that are ordinary words, so that only identifiers are searched for them.
REPLACED_IDENTIFIERS = {
    "Book": "RecordTable",
    "BookVault": "TableVault",
    "_Room": "_LoopReceivers",
    "_heard": "the precise verb",
    "_journey": "_pending_login",
    "_older_knock": "_probe_older_server",
    "_see_off": "_wait_until_ended",
    "_shelf": "_repository",
    "_tell": "the precise verb, such as _notify",
    "_told": "the precise noun or verb",
    "board": "topic",
    "boards": "topics",
    "desk": "the precise noun, such as mailer",
    "hear": "receive",
    "heard": "received",
    "hears": "receivers",
    "hurry": "end_grace_period",
    "shelves": "feature_lists",
    "stir": "wake",
    "tell": "notify, publish or on_step",
    "told": "the precise noun, such as parameters",
    "unheard": "ignore_notice",
}
# Phrases that read as translated, with what replaced them in messages, help texts and comments.
REPLACED_PHRASES = {
    "are the most": "the limit is",
    "at its hand": "with",
    "begin anew": "start again",
    "broke off in": "stopped in",
    "cannot be pointed at": "cannot connect to",
    "gives no codes": "does not issue authorization codes",
    "go on with cursor": "continue with cursor",
    "goes before": "precedes",
    "has come before": "was used before",
    "lets anybody in": "accepts requests without a token",
    "no signed JWT": "not a signed JWT",
    "nobody watches": "automated access",
    "not as it was written": "was changed",
    "not known here": "unknown, or not supported",
    "sends on to": "redirects to",
    "the person did not": "the user did not",
    "what there is": "what exists, such as the tables",
    "who shows no token": "requests without a token",
    "whoever runs the server": "the operator of the server",
}
TEXT = {".css", ".html", ".js", ".md", ".py", ".toml", ".txt"}


def pattern(term: str) -> re.Pattern[str]:
    """The search for a term: whole words, singular and plural, not as part of a dotted path."""
    words = r"[ -]".join(re.escape(word) for word in re.split("[ -]", term))
    return re.compile(rf"(?<![\w.]){words}s?(?!\w)", re.IGNORECASE)


@cache
def lowered(text: str) -> str:
    """A text of the source in lower case."""
    return text.lower()


@cache
def texts(top: Path) -> Mapping[str, str]:
    """The text files of the source, by their paths, in the byte order of these."""
    found = {
        path.relative_to(top).as_posix(): path.read_text(encoding="utf-8")
        for path in top.glob("packages/*/src/**/*")
        if path.suffix in TEXT
    }
    return dict(sorted(found.items(), key=lambda file: file[0].encode()))


def hits(top: Path, term: str) -> Iterator[tuple[str, int]]:
    """The occurrences of a term: path and line number, in the order of the search."""
    wanted = pattern(term)
    (first, *_) = re.split("[ -]", term.lower())
    for where, text in texts(top).items():
        if first in lowered(text):
            for number, line in enumerate(text.splitlines(), 1):
                if wanted.search(line):
                    yield where, number


def contains(text: str, phrase: str) -> bool:
    """Whether a text has a phrase, in any case. Between its words, a line may end, and a part of a
    string or of a comment.
    """
    if not all(word.lower() in lowered(text) for word in phrase.split()):
        return False  # most texts lack one of the words, and the search below is slow
    gap = r"(?:\s|#|[\"'](?:\s*[rf]*[\"']))+"
    words = gap.join(re.escape(word) for word in phrase.split())
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


@pytest.mark.parametrize("term", IMPLEMENTED_IN)
def test_the_first_hit_is_the_file_that_implements_it(top: Path, term: str) -> None:
    where, line = next(hits(top, term), ("nowhere", 0))
    assert where == IMPLEMENTED_IN[term], f"{term}: the first hit is {where}:{line}"


@pytest.mark.parametrize("term", IMPLEMENTED_IN)
def test_the_file_that_implements_it_says_so_at_its_beginning(top: Path, term: str) -> None:
    first = next(line for where, line in hits(top, term) if where == IMPLEMENTED_IN[term])
    assert first <= 5, f"{term}: line {first}"


def test_replaced_phrases_and_names_do_not_come_back(top: Path) -> None:
    """In no text of the source, whatever its line breaks."""
    found = []
    for where, text in texts(top).items():
        found += [
            f"{where}: {phrase!r}; say {instead!r}"
            for phrase, instead in REPLACED_PHRASES.items()
            if contains(text, phrase)
        ]
        found += [
            f"{where}: {name}; the name is {instead}"
            for name, instead in REPLACED_NAMES.items()
            if where.endswith(".py") and name in text and re.search(rf"\b{name}\b", text)
        ]
    assert not found, "\n".join(found)


def identifiers(source: Source) -> Iterator[tuple[str, int]]:
    """The identifiers of a file, with their lines: definitions, parameters, names, attributes."""
    for node, _ in source.nodes:
        for field in ("id", "attr", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str):
                yield name, getattr(node, "lineno", 0)


def test_replaced_identifiers_do_not_come_back(source_tree: SourceTree) -> None:
    """The words themselves may stand in sentences."""
    found = [
        f"{source.where}:{line}: {name}; the name is {REPLACED_IDENTIFIERS[name]}"
        for source in source_tree.sources
        for name, line in identifiers(source)
        if name in REPLACED_IDENTIFIERS
    ]
    assert not found, "\n".join(found)


def test_a_phrase_is_found_over_line_breaks_and_broken_strings() -> None:
    assert contains('x = (\n    "Begin "\n    f"anew."\n)\n', "begin anew")
    assert contains("# Begin\n# anew.\n", "begin anew")
    assert not contains("begin_anew = beginning + anew\n", "begin anew")


def test_the_search_finds_plurals_hyphens_and_capitals_but_no_parts_of_words() -> None:
    search = pattern("rate limit").search
    assert search("Rate limits of")
    assert search("a rate-limit.")
    assert not search("from .rate_limit import x")
    assert not search("separate limits")
    assert pattern("lease").search("a lease ends")
    assert not pattern("lease").search("please release hold_lease; from .leases import x")
