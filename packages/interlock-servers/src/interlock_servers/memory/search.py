"""Full-text search for entities by words, prefixes and parts of words.

Search words are never read as the index's query syntax: the text is cut into words here, and each
word is quoted.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import NamedTuple

from interlock import ToolError

from .graph import CallProgress
from .texts import folded, sign_of, words_of

_TERM = re.compile(r'"([^"]*)"|(\S+)')
_MOST_QUERY = 2_000  # characters
_MOST_TERMS = 32
_MOST_PIECES = 48  # trigrams of a term that are looked up; the rest is compared
_PIECE = 3
_LOOKS = 512
_COMMON = 2_000  # matching entities from which a word counts as too common to rank by
# The bonus of an entity whose name equals the query, whose name matches it, or that contains it as
# whole words.
_EXACT = 4_000.0
_NAMED = 2_000.0
_WHOLE = 1_000.0
_WEIGHTS = "8.0, 3.0, 1.0"  # of name, type and observations
_SOME = "no entity has all of these words; these have some of them"
_SLOW = (
    "this SQLite has no full-text search, so every entity was scanned, and the results "
    "are not ranked"
)


class SearchTerm(NamedTuple):
    """A part of a query: its normalized text and its words."""

    text: str
    words: tuple[str, ...]

    @property
    def is_word(self) -> bool:
        """Whether it is a single word (or several of a script without spaces)."""
        return "".join(self.words) == self.text

    def phrase(self, *, whole: bool = False) -> str:
        """The expression for the word index: a phrase, whose last word may be incomplete."""
        return f'"{" ".join(self.words)}"' + ("" if whole else " *")

    def begins_one_of(self, terms: list[SearchTerm]) -> bool:
        """Whether every match of one of these terms is a match of this one too, as its prefix."""
        return any(
            len(self.words) == len(one.words) == 1
            and one != self
            and one.words[0].startswith(self.words[0])
            for one in terms
        )

    def pieces(self) -> str:
        """The expression for the trigram index: all trigrams, in any order."""
        cut = dict.fromkeys(self.text[n : n + _PIECE] for n in range(len(self.text) - _PIECE + 1))
        return " AND ".join(
            '"' + piece.replace('"', '""') + '"' for piece in list(cut)[:_MOST_PIECES]
        )


class SearchHits(NamedTuple):
    """Row numbers of the hits, best first, and a note on anything unusual."""

    ids: list[int]
    note: str | None = None


def terms_of(query: str) -> list[SearchTerm]:
    """Split a query into terms: words, or phrases in quotation marks. All of them must match.

    Raises ToolError if it is too long.
    """
    if len(query) > _MOST_QUERY:
        raise ToolError(
            f"The query is too long ({len(query):,} characters; {_MOST_QUERY:,} are the "
            "limit). Send fewer words."
        )
    texts = [
        folded(part).strip() for found in _TERM.findall(query.replace("\0", " ")) for part in found
    ]
    return [SearchTerm(text, tuple(words_of(text))) for text in dict.fromkeys(texts) if text][
        :_MOST_TERMS
    ]


def search(
    db: sqlite3.Connection,
    query: str,
    kind: str | None,
    enough: int,
    most: int,
    progress: CallProgress,
    *,
    indexed: bool,
) -> SearchHits:
    """The entities that match all words of a query, or some words if none match all; optionally of
    one type.

    If fewer than `enough` match by words or prefixes, parts of words match too. The result has at
    most `most`.
    """
    terms = terms_of(query)
    allowed = (
        {id_ for (id_,) in db.execute("SELECT id FROM entities WHERE kind = ?", (kind,))}
        if kind is not None
        else None
    )
    if not terms:
        rows = db.execute("SELECT id FROM entities ORDER BY id DESC")
        return SearchHits(_first((id_ for (id_,) in rows), allowed, most))
    if not indexed:
        return SearchHits(_looked_at(db, terms, allowed, most, progress), _SLOW)
    counts: dict[str, int] = {}
    ids = _all(db, terms, query, allowed, most, counts)
    if len(ids) < enough and any(len(term.text) >= _PIECE for term in terms):
        ids += _first(_having(db, terms, in_words=True), allowed, most - len(ids), but=set(ids))
    if ids or len(terms) == 1:
        return SearchHits(ids)
    scores = _ranked(db, [term for term in terms if term.words], " OR ", allowed, most, counts)
    return SearchHits(sorted(scores, key=lambda id_: (scores[id_], -id_))[:most], _SOME)


def _all(
    db: sqlite3.Connection,
    terms: list[SearchTerm],
    query: str,
    allowed: set[int] | None,
    most: int,
    counts: dict[str, int],
) -> list[int]:
    """The entities that match all terms: words as words, others literally."""
    if all(term.is_word for term in terms):
        return _in_order(db, terms, query, allowed, most, counts)
    having = _first(_having(db, terms), allowed, most)
    found = _in_order(db, [term for term in terms if term.words], query, set(having), most, counts)
    return found + _first(
        having, None, most - len(found), but=set(found)
    )  # matches that do not begin at a word


def _in_order(
    db: sqlite3.Connection,
    terms: list[SearchTerm],
    query: str,
    allowed: set[int] | None,
    most: int,
    counts: dict[str, int],
) -> list[int]:
    """The entities that match all terms as words or prefixes, best first."""
    words = " AND ".join(term.phrase() for term in terms)
    if not words or (allowed is not None and not allowed):
        return []
    ids = _ranked(db, terms, " AND ", allowed, most, counts)
    if not ids:
        return []
    # Matches of names first, even if there are too many matches to rank them all.
    whole = " AND ".join(term.phrase(whole=True) for term in terms)
    ids |= {
        id_: ids.get(id_, 0.0) - _WHOLE
        for id_ in _first(_matching(db, "words", whole), allowed, most)
    }
    if named := _first(_matching(db, "words", f"name : ({words})"), allowed, most):
        ids |= {id_: ids.get(id_, 0.0) - _NAMED for id_ in named}
        name = " ".join(words_of(folded(query)))
        exact = db.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND name = ? LIMIT 20",
            (f'name : ^ "{name}"', name),
        )
        ids |= {
            id_: ids.get(id_, 0.0) - _EXACT for (id_,) in exact if allowed is None or id_ in allowed
        }
    return sorted(ids, key=lambda id_: (ids[id_], -id_))[:most]


def _ranked(
    db: sqlite3.Connection,
    terms: list[SearchTerm],
    joint: str,
    allowed: set[int] | None,
    most: int,
    counts: dict[str, int],
) -> dict[int, float]:
    """The newest matches in the word index, with their scores (lower is better).

    `counts` caches how many entities match a phrase. Very common words are left out of the score:
    they say little, and SQLite would read every entity that contains them.
    """
    any_ = joint == " OR "
    phrases = [term.phrase() for term in terms if any_ or not term.begins_one_of(terms)]
    if len(phrases) > 1:
        for phrase in phrases:
            counts[phrase] = counts[phrase] if phrase in counts else _count(db, phrase)
            if not counts[phrase] and not any_:
                return {}
        phrases = [phrase for phrase in phrases if counts[phrase]]
    if not phrases:
        return {}
    found = dict.fromkeys(_first(_matching(db, "words", joint.join(phrases)), allowed, most), 0.0)
    telling = [phrase for phrase in phrases if counts.get(phrase, len(found)) < _COMMON]
    if telling:
        query = (
            f"SELECT rowid, bm25(words, {_WEIGHTS}) FROM words WHERE words MATCH ? ORDER BY rowid "
            f"DESC LIMIT {_COMMON}"
        )
        scores = db.execute(query, (joint.join(telling),))
        found |= {
            id_: score
            for id_, score in scores
            if id_ in found or (any_ and (allowed is None or id_ in allowed))
        }
    return found


def _count(db: sqlite3.Connection, phrase: str) -> int:
    """How many entities match a phrase, up to the number that counts as common."""
    ((count,),) = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {_COMMON})", (phrase,)
    ).fetchall()
    return int(count)


def _having(
    db: sqlite3.Connection, terms: list[SearchTerm], *, in_words: bool = False
) -> Iterator[int]:
    """The entities that match all terms, newest first: as prefixes of words, or with `in_words`
    also inside words if the term is long enough.
    """
    plain = [term for term in terms if term.is_word and not (in_words and len(term.text) >= _PIECE)]
    others = [term for term in terms if term not in plain]
    streams: list[Iterator[int]] = []
    if plain:
        streams.append(_matching(db, "words", " AND ".join(term.phrase() for term in plain)))
    if signs := [term.text for term in others if len(term.text) < _PIECE]:
        streams.append(_matching(db, "signs", " AND ".join(f'"{sign_of(text)}"' for text in signs)))
    if long := [term for term in others if len(term.text) >= _PIECE]:
        longer = [term.text for term in long if len(term.text) > _PIECE]
        compared = "".join([" AND instr(text, ?) > 0"] * len(longer))
        query = f"SELECT rowid FROM pieces WHERE pieces MATCH ?{compared} ORDER BY rowid DESC"
        streams.append(
            id_
            for (id_,) in db.execute(query, (" AND ".join(term.pieces() for term in long), *longer))
        )
    return reduce(_both, streams)


def _matching(db: sqlite3.Connection, table: str, expression: str) -> Iterator[int]:
    """The matches of an expression in an index, newest first."""
    for (id_,) in db.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC", (expression,)
    ):
        yield id_


def _both(one: Iterator[int], other: Iterator[int]) -> Iterator[int]:
    """The intersection of two descending streams of numbers."""
    left = next(one, None)
    right = next(other, None)
    while left is not None and right is not None:
        if left == right:
            yield left
            left = next(one, None)
            right = next(other, None)
        elif left > right:
            left = next(one, None)
        else:
            right = next(other, None)


def _looked_at(
    db: sqlite3.Connection,
    terms: list[SearchTerm],
    allowed: set[int] | None,
    most: int,
    progress: CallProgress,
) -> list[int]:
    """The entities that match all terms, without an index: matches in names come first."""
    named: list[int] = []
    others: list[int] = []
    for count, (id_, name, kind) in enumerate(
        db.execute("SELECT id, name, kind FROM entities ORDER BY id DESC").fetchall()
    ):
        if count % _LOOKS == 0:
            progress.check()
        if allowed is not None and id_ not in allowed:
            continue
        texts = db.execute("SELECT text FROM observations WHERE entity = ?", (id_,)).fetchall()
        name = folded(name)
        whole = "\n".join([name, folded(kind), *(folded(text) for (text,) in texts)])
        if all(term.text in whole for term in terms):
            (named if all(term.text in name for term in terms) else others).append(id_)
    return [*named, *others][:most]


def _first(
    ids: Iterable[int], allowed: set[int] | None, most: int, but: set[int] | None = None
) -> list[int]:
    found: list[int] = []
    for id_ in ids:
        if len(found) >= most:
            break
        if (allowed is None or id_ in allowed) and (but is None or id_ not in but):
            found.append(id_)
    return found


def names_alike(db: sqlite3.Connection, name: str) -> list[str]:
    """Other names that differ only in case, accents, or the characters between words."""
    words = " ".join(words_of(folded(name)))
    if not words:
        return []
    query = (
        "SELECT e.name FROM words JOIN entities e ON e.id = words.rowid WHERE words MATCH ? AND "
        "words.name = ? LIMIT 50"
    )
    found = [
        other for (other,) in db.execute(query, (f'name : ^ "{words}"', words)) if other != name
    ]
    return [other for other in found if _plain(other) == _plain(name)]


def _plain(name: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", folded(name)).split())


def names_like(db: sqlite3.Connection, begun: str, most: int, *, indexed: bool) -> list[str]:
    """Names that begin with a text, or contain a word that does."""
    escaped = re.sub(r"([%_\\])", r"\\\1", begun)
    query = "SELECT name FROM entities WHERE name LIKE ? ESCAPE '\\' ORDER BY name LIMIT ?"
    names = [name for (name,) in db.execute(query, (f"{escaped}%", most))]
    terms = [term for term in terms_of(begun[:_MOST_QUERY]) if term.words]
    if indexed and terms and len(names) < most:
        expression = "name : (" + " AND ".join(term.phrase() for term in terms) + ")"
        query = (
            "SELECT e.name FROM words JOIN entities e ON e.id = words.rowid WHERE words MATCH ? "
            "ORDER BY e.name LIMIT ?"
        )
        names += [name for (name,) in db.execute(query, (expression, most))]
    return list(dict.fromkeys(names))[:most]
