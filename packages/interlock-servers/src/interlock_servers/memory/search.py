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
_MOST_PIECES = 48  # trigrams that are looked up for a term; the rest is compared
_PIECE = 3
_LOOKS = 512
_COMMON = 2_000  # entities that have a word, from which on it tells little of any of them
# By how much an entity comes before others whose name is what is looked for, or has it, or which
# has it as whole words.
_EXACT = 4_000.0
_NAMED = 2_000.0
_WHOLE = 1_000.0
_WEIGHTS = "8.0, 3.0, 1.0"  # of name, type and observations
_SOME = "no entity has all of these words, so these are those that have some of them"
_SLOW = (
    "this SQLite has no full-text search, so every entity was looked at, and those found are not "
    "in the order of how well they fit"
)


class SearchTerm(NamedTuple):
    """A part of a query: its normalized text and its words."""

    text: str
    words: tuple[str, ...]

    @property
    def is_word(self) -> bool:
        """Whether it is nothing but a word (or several of a script without spaces)."""
        return "".join(self.words) == self.text

    def phrase(self, *, whole: bool = False) -> str:
        """For the index of words: these, one after the other, the last one perhaps only begun."""
        return f'"{" ".join(self.words)}"' + ("" if whole else " *")

    def begins_one_of(self, terms: list[SearchTerm]) -> bool:
        """Whether whatever has one of these has this too, as its beginning."""
        return any(
            len(self.words) == len(one.words) == 1
            and one != self
            and one.words[0].startswith(self.words[0])
            for one in terms
        )

    def pieces(self) -> str:
        """For the index of pieces: all of them, in whatever order."""
        cut = dict.fromkeys(self.text[n : n + _PIECE] for n in range(len(self.text) - _PIECE + 1))
        return " AND ".join(
            '"' + piece.replace('"', '""') + '"' for piece in list(cut)[:_MOST_PIECES]
        )


class SearchHits(NamedTuple):
    """Row numbers of the hits, best first, and a note on anything unusual."""

    ids: list[int]
    note: str | None = None


def terms_of(query: str) -> list[SearchTerm]:
    """What a query asks for: words, or phrases in quotation marks; all of them.

    Raises ToolError for one that is too long.
    """
    if len(query) > _MOST_QUERY:
        raise ToolError(
            f"That is too long to look for ({len(query):,} characters; {_MOST_QUERY:,} are the "
            "most). Send fewer words."
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
    """What has all the words of a query, or some where nothing has all; of a type where one is
    named.

    Where fewer than `enough` have them as words, or their beginnings, the middle of words is looked
    at as well. At most `most` are found.
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
    """What has all of them: those that are words as words, others as they stand."""
    if all(term.is_word for term in terms):
        return _in_order(db, terms, query, allowed, most, counts)
    having = _first(_having(db, terms), allowed, most)
    found = _in_order(db, [term for term in terms if term.words], query, set(having), most, counts)
    return found + _first(
        having, None, most - len(found), but=set(found)
    )  # what has them, but not where a word begins


def _in_order(
    db: sqlite3.Connection,
    terms: list[SearchTerm],
    query: str,
    allowed: set[int] | None,
    most: int,
    counts: dict[str, int],
) -> list[int]:
    """What has all of these as words or their beginnings, in the order of how well it fits."""
    words = " AND ".join(term.phrase() for term in terms)
    if not words or (allowed is not None and not allowed):
        return []
    ids = _ranked(db, terms, " AND ", allowed, most, counts)
    if not ids:
        return []
    # Names before all else, also where so many were found that not all of them are put in order.
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
    """What the index of words has: the newest, with how well each fits (the smaller the better).

    `counts` remembers who has what.

    Words that very many have say nothing of that, and to weigh them SQLite looks at every entity
    that has them: they are left out of it.
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
    """How many entities have something, as far as that matters."""
    ((count,),) = db.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT {_COMMON})", (phrase,)
    ).fetchall()
    return int(count)


def _having(
    db: sqlite3.Connection, terms: list[SearchTerm], *, in_words: bool = False
) -> Iterator[int]:
    """What has all of them somewhere, the newest first: words at their beginning, or where they are
    long enough `in_words` as well.
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
    """What an index has for an expression, the newest first."""
    for (id_,) in db.execute(
        f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid DESC", (expression,)
    ):
        yield id_


def _both(one: Iterator[int], other: Iterator[int]) -> Iterator[int]:
    """What is in both; each has its numbers from the largest to the smallest."""
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
    """What has all of them somewhere, found without an index: those whose name has them before the
    others.
    """
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
    """Names of others that look like one: they differ in nothing but case, accents, and what parts
    the words.
    """
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
    """Names that begin as what was typed, or that have a word which does."""
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
