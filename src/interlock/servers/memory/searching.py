"""Finds entities by words, beginnings of words and parts of words, in their names, types and observations.

What somebody looks for is never read as the index's own syntax: it is cut into words here, and each is quoted.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from interlock import ToolError

from .graph import Pace
from .texts import folded, words_of

_TERM = re.compile(r'"([^"]*)"|(\S+)')
_MOST_QUERY = 2_000  # characters
_MOST_TERMS = 32
_MOST_PIECES = 48  # trigrams that are looked up for a term; the rest is compared
_PIECE = 3
_LOOKS = 512
# By how much an entity comes before others whose name is what is looked for, or has it, or which has it as whole words.
_EXACT, _NAMED, _WHOLE = 4_000.0, 2_000.0, 1_000.0
_WEIGHTS = "8.0, 3.0, 1.0"  # of name, type and observations
_SOME = "no entity has all of these words, so these are those that have some of them"
_SLOW = "this SQLite has no full-text search, so every entity was looked at, and those found are not in the order of how well they fit"


class Term(NamedTuple):
    """A part of what is looked for: its text, folded, and its words."""

    text: str
    words: tuple[str, ...]

    @property
    def is_word(self) -> bool:
        """Whether it is nothing but a word (or several of a script without spaces)."""
        return "".join(self.words) == self.text

    def phrase(self, *, whole: bool = False) -> str:
        """For the index of words: these, one after the other, the last one perhaps only begun."""
        return f'"{" ".join(self.words)}"' + ("" if whole else " *")

    def pieces(self) -> str:
        """For the index of pieces: all of them, in whatever order."""
        cut = dict.fromkeys(self.text[n : n + _PIECE] for n in range(len(self.text) - _PIECE + 1))
        return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in list(cut)[:_MOST_PIECES])


class Found(NamedTuple):
    """The numbers of what was found, the best first, and what is not as one would think."""

    ids: list[int]
    note: str | None = None


def terms_of(query: str) -> list[Term]:
    """What a query asks for: words, or phrases in quotation marks; all of them. Raises ToolError for one that is too long."""
    if len(query) > _MOST_QUERY:
        raise ToolError(f"That is too long to look for ({len(query):,} characters; {_MOST_QUERY:,} are the most). Send fewer words.")
    texts = [folded(part).strip() for found in _TERM.findall(query.replace("\0", " ")) for part in found]
    return [Term(text, tuple(words_of(text))) for text in dict.fromkeys(texts) if text][:_MOST_TERMS]


def search(db: sqlite3.Connection, query: str, kind: str | None, enough: int, most: int, pace: Pace, *, indexed: bool) -> Found:
    """What has all the words of a query, or some where nothing has all; of a type where one is named.

    Where fewer than `enough` have them as words, or their beginnings, the middle of words is looked at as well. At most `most` are found.
    """
    terms = terms_of(query)
    allowed = {id_ for (id_,) in db.execute("SELECT id FROM entities WHERE kind = ?", (kind,))} if kind is not None else None
    if not terms:
        rows = db.execute("SELECT id FROM entities ORDER BY id DESC")
        return Found(_first((id_ for (id_,) in rows), allowed, most))
    if not indexed:
        return Found(_looked_at(db, terms, allowed, most, pace), _SLOW)
    ids = _all(db, terms, query, allowed, most)
    if len(ids) < enough and any(len(term.text) >= _PIECE for term in terms):
        ids += _first(_by_parts(db, terms, allowed), None, most - len(ids), but=set(ids))
    if ids or len(terms) == 1:
        return Found(ids)
    return Found(_any(db, terms, allowed, most), _SOME)


def _all(db: sqlite3.Connection, terms: list[Term], query: str, allowed: set[int] | None, most: int) -> list[int]:
    """What has all of them: those that are words as words, others as they stand."""
    others = [term for term in terms if not term.is_word]
    if others:
        allowed = set(_by_parts(db, others, allowed))
    found = _in_order(db, [term for term in terms if term.words], query, allowed, most)
    if others and len(found) < most:  # what has them, but not where a word begins
        words = " AND ".join(term.phrase() for term in terms if term.is_word)
        rest = _ranked(db, words, allowed, most) if words else allowed or ()
        found += _first(sorted(rest, reverse=True), None, most - len(found), but=set(found))
    return found


def _in_order(db: sqlite3.Connection, terms: list[Term], query: str, allowed: set[int] | None, most: int) -> list[int]:
    """What has all of these as words or their beginnings, in the order of how well it fits."""
    words = " AND ".join(term.phrase() for term in terms)
    if not words:
        return []
    ids = _ranked(db, words, allowed, most)
    # Names before all else, also where so many were found that not all of them are put in order.
    for better, by in ((" AND ".join(term.phrase(whole=True) for term in terms), _WHOLE), (f"name : ({words})", _NAMED)):
        rows = db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC", (better,))
        ids |= {id_: ids.get(id_, 0.0) - by for id_ in _first((id_ for (id_,) in rows), allowed, most)}
    name = " ".join(words_of(folded(query)))
    exact = db.execute("SELECT rowid FROM words WHERE words MATCH ? AND name = ? LIMIT 20", (f'name : ^ "{name}"', name))
    ids |= {id_: ids.get(id_, 0.0) - _EXACT for (id_,) in exact if allowed is None or id_ in allowed}
    return sorted(ids, key=lambda id_: (ids[id_], -id_))[:most]


def _ranked(db: sqlite3.Connection, expression: str, allowed: set[int] | None, most: int) -> dict[int, float]:
    """What the index of words has for an expression: the newest, with how well each fits (the smaller the better)."""
    query = f"SELECT rowid, bm25(words, {_WEIGHTS}) FROM words WHERE words MATCH ? ORDER BY rowid DESC"
    found: dict[int, float] = {}
    for id_, score in db.execute(query, (expression,)):
        if allowed is None or id_ in allowed:
            found[id_] = score
            if len(found) >= most:
                break
    return found


def _by_parts(db: sqlite3.Connection, terms: list[Term], allowed: set[int] | None) -> list[int]:
    """What has all of them somewhere, in the middle of words too. The index has pieces of three characters, shorter ones are compared."""
    wanted = " AND ".join(term.pieces() for term in terms if len(term.text) >= _PIECE)
    conditions, values = ["instr(text, ?) > 0"] * len(terms), [term.text for term in terms]
    if wanted:
        conditions.insert(0, "pieces MATCH ?")
        values.insert(0, wanted)
    rows = db.execute(f"SELECT rowid FROM pieces WHERE {' AND '.join(conditions)} ORDER BY rowid DESC", values)
    return [id_ for (id_,) in rows if allowed is None or id_ in allowed]


def _any(db: sqlite3.Connection, terms: list[Term], allowed: set[int] | None, most: int) -> list[int]:
    """What has some of them; those with more, and rarer ones, come first."""
    words = " OR ".join(term.phrase() for term in terms if term.words)
    if not words:
        return []
    ids = _ranked(db, words, allowed, most)
    return sorted(ids, key=lambda id_: (ids[id_], -id_))


def _looked_at(db: sqlite3.Connection, terms: list[Term], allowed: set[int] | None, most: int, pace: Pace) -> list[int]:
    """What has all of them somewhere, found without an index: those whose name has them before the others."""
    named: list[int] = []
    others: list[int] = []
    for count, (id_, name, kind) in enumerate(db.execute("SELECT id, name, kind FROM entities ORDER BY id DESC").fetchall()):
        if count % _LOOKS == 0:
            pace.check()
        if allowed is not None and id_ not in allowed:
            continue
        texts = db.execute("SELECT text FROM observations WHERE entity = ?", (id_,)).fetchall()
        name = folded(name)
        whole = "\n".join([name, folded(kind), *(folded(text) for (text,) in texts)])
        if all(term.text in whole for term in terms):
            (named if all(term.text in name for term in terms) else others).append(id_)
    return [*named, *others][:most]


def _first(ids: Iterable[int], allowed: set[int] | None, most: int, but: set[int] | None = None) -> list[int]:
    found: list[int] = []
    for id_ in ids:
        if len(found) >= most:
            break
        if (allowed is None or id_ in allowed) and (but is None or id_ not in but):
            found.append(id_)
    return found


def names_like(db: sqlite3.Connection, begun: str, most: int, *, indexed: bool) -> list[str]:
    """Names that begin as what was typed, or that have a word which does."""
    escaped = re.sub(r"([%_\\])", r"\\\1", begun)
    query = "SELECT name FROM entities WHERE name LIKE ? ESCAPE '\\' ORDER BY name LIMIT ?"
    names = [name for (name,) in db.execute(query, (f"{escaped}%", most))]
    terms = [term for term in terms_of(begun[:_MOST_QUERY]) if term.words]
    if indexed and terms and len(names) < most:
        expression = "name : (" + " AND ".join(term.phrase() for term in terms) + ")"
        query = "SELECT e.name FROM words JOIN entities e ON e.id = words.rowid WHERE words MATCH ? ORDER BY e.name LIMIT ?"
        names += [name for (name,) in db.execute(query, (expression, most))]
    return list(dict.fromkeys(names))[:most]
