"""Full-text search over tools, best match first."""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, TypeVar

from interlock.types import Tool

K = TypeVar("K", bound=Hashable)

NAME = 4.0
TITLE = 3.0
ABOUT = 1.0
SERVER = 1.5
PARAMETER = 0.8
REMARK = 0.3
"""The weight of a word by its place: name, title, description, the server's id, a parameter's name,
and a parameter's description.
"""

_SHORT = 120  # characters of a text that is likely to recur
_TEXT = 8_192  # characters read of one text
_PARAMETERS = 64  # parameters read of one tool
_MOST_WORDS = 32  # words used of a query
_ENDINGS = 40  # indexed words that extend one of the query's words
_SATURATION = 1.2  # how soon repetition stops counting (BM25 k1)
_LENGTH = 0.55  # how much a long text loses (BM25 b)
_OFTEN = 3  # times that a word counts in one text
_ALIKE = 0.5  # weight of a synonym
_BEGINNING = 0.6  # weight of a word that only begins with a word of the query

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
# Scripts without spaces: Chinese, Japanese, Korean, Thai and its neighbours. They are indexed as
# pairs of characters.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
_STOP = {
    "a",
    "about",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "for",
    "from",
    "get",
    "give",
    "had",
    "has",
    "have",
    "he",
    "her",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "let",
    "like",
    "me",
    "my",
    "need",
    "of",
    "on",
    "one",
    "or",
    "our",
    "out",
    "please",
    "shall",
    "she",
    "should",
    "so",
    "some",
    "tell",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "they",
    "this",
    "to",
    "tool",
    "tools",
    "up",
    "us",
    "use",
    "using",
    "want",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "will",
    "with",
    "would",
    "you",
    "your",
}

# Synonyms of actions.
_DEEDS = (
    "create add new make insert open send post book write start begin",
    "delete remove cancel destroy erase drop clear discard",
    "show read view fetch retrieve lookup check see display",
    "list browse enumerate every",
    "update change edit modify set adjust rename restart turn",
    "search find query seek look",
)
_MEANT = {
    word: tuple(other for other in deeds.split() if other != word)
    for deeds in _DEEDS
    for word in deeds.split()
}


def words_of(text: str, most: int = _TEXT) -> list[str]:
    """The words of the first `most` characters of a text, normalized for comparison.

    They are in lower case, without accents, in the singular.
    """
    return list(_short_words(text)) if len(text) <= _SHORT else _words(text[:most])


@lru_cache(maxsize=8_192)
def _short_words(text: str) -> tuple[str, ...]:
    return tuple(_words(text))  # the same parameters with the same descriptions recur in many tools


def _words(text: str) -> list[str]:
    if not text.isascii():
        text = "".join(
            c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
        )
        text = unicodedata.normalize("NFC", text)
    if not text.islower():
        text = _HUMP.sub(" ", text)
    found = _WORD.findall(text.casefold())
    if text.isascii():
        return [stem(word) for word in found]
    return [part for word in found for part in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    at = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > at:
            yield stem(word[at : run.start()])
        signs = run.group()
        yield from (signs[i : i + 2] for i in range(max(1, len(signs) - 1)))
        at = run.end()
    if at < len(word):
        yield stem(word[at:])


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A word without its plural ending."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies"):
        return f"{word[:-3]}y" if len(word) > 4 else word[:-1]
    if word.endswith(("ches", "shes", "xes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def fields_of(server: str, tool: Tool) -> list[tuple[float, str]]:
    """The texts of a tool with the weights of their words."""
    fields = [
        (NAME, tool.name),
        (TITLE, tool.title or ""),
        (ABOUT, tool.description or ""),
        (SERVER, server),
    ]
    if tool.annotations is not None and tool.annotations.title:
        fields.append((TITLE, tool.annotations.title))
    properties: Any = tool.input_schema.get("properties")
    if isinstance(properties, Mapping):
        for name, schema in list(properties.items())[:_PARAMETERS]:
            fields.append((PARAMETER, str(name)))
            if isinstance(schema, Mapping):
                fields.extend(
                    (REMARK, text)
                    for text in (schema.get("title"), schema.get("description"))
                    if isinstance(text, str)
                )
    return fields


class TextIndex(Generic[K]):
    """A full-text index.

    The cost of `put` and `drop` depends on the one text only. `search` returns keys, best first.
    """

    def __init__(self) -> None:
        self._texts: dict[K, dict[str, float]] = {}  # the words of each text, with their weights
        self._sizes: dict[K, float] = {}
        self._places: dict[str, dict[K, float]] = {}  # the texts of each word
        self._words: list[str] | None = None  # all words, sorted; None if outdated
        self._size = 0.0

    def __len__(self) -> int:
        return len(self._texts)

    def put(self, key: K, fields: list[tuple[float, str]]) -> None:
        """Index a text under a key, in place of the previous one."""
        self.drop(key)
        counts: dict[str, float] = {}
        size = 0.0
        for weight, text in fields:
            words = words_of(text)
            size += weight * len(words)
            if len(words) <= _OFTEN:
                for word in words:
                    counts[word] = counts.get(word, 0.0) + weight
                continue
            # Repeating a word in a text does not raise its score, but the length of the text still
            # counts.
            for word, times in Counter(words).items():
                counts[word] = counts.get(word, 0.0) + weight * min(times, _OFTEN)
        for word, count in counts.items():
            places = self._places.get(word)
            if places is None:
                places = self._places[word] = {}
                self._words = None
            places[key] = count
        self._texts[key] = counts
        self._sizes[key] = size
        self._size += size

    def drop(self, key: K) -> None:
        """Remove the text of a key."""
        counts = self._texts.pop(key, None)
        if counts is None:
            return
        self._size -= self._sizes.pop(key)
        for word in counts:
            places = self._places[word]
            del places[key]
            if not places:
                del self._places[word]
                self._words = None

    def search(self, words: str) -> list[tuple[K, float]]:
        """The keys of the texts that match, with their scores, best first; ties in the order of
        `put`.
        """
        wanted = list(dict.fromkeys(words_of(words)))
        terms = [word for word in wanted if word not in _STOP][:_MOST_WORDS] or wanted[:_MOST_WORDS]
        if not terms or not self._texts:
            return []
        scores: dict[K, float] = {}
        matched: dict[K, float] = {}
        for word in terms:
            best, rarity = self._one(word)
            for key, score in best.items():
                scores[key] = scores.get(key, 0.0) + score
                matched[key] = matched.get(key, 0.0) + rarity
        most = max(matched.values(), default=1.0)
        order = {key: number for number, key in enumerate(self._texts)} if len(scores) > 1 else {}
        # A text with all the words ranks above a text that repeats one of them.
        ranked = [(key, score * (0.4 + 0.6 * matched[key] / most)) for key, score in scores.items()]
        ranked.sort(key=lambda found: (-found[1], order.get(found[0], 0)))
        return ranked

    def _one(self, word: str) -> tuple[dict[K, float], float]:
        """The score of one word in each text that has it, or a word that extends it; and its
        rarity.
        """
        best: dict[K, float] = {}
        rarest = 0.0
        middle = self._size / len(self._texts)
        for term, quality in self._terms(word):
            places = self._places[term]
            rarity = quality * math.log(
                1 + (len(self._texts) - len(places) + 0.5) / (len(places) + 0.5)
            )
            rarest = max(rarest, rarity)
            for key, count in places.items():
                slack = _SATURATION * (1 - _LENGTH + _LENGTH * self._sizes[key] / middle)
                score = rarity * count * (_SATURATION + 1) / (count + slack)
                if score > best.get(key, 0.0):
                    best[key] = score
        return best, rarest

    def _terms(self, word: str) -> list[tuple[str, float]]:
        terms = [(word, 1.0)] if word in self._places else []
        if len(word) >= 3:
            if self._words is None:
                self._words = sorted(self._places)
            at = bisect_left(self._words, word)
            for term in self._words[at : at + _ENDINGS]:
                if not term.startswith(word):
                    break
                if term != word:
                    terms.append(
                        (term, _BEGINNING * len(word) / len(term) + (1 - _BEGINNING) * 0.3)
                    )
        # The other direction: the query has "temperatures" and the text "temp", or "booking" and
        # "book".
        if len(word) >= 6:
            terms.extend(
                (word[:cut], _BEGINNING * 0.8)
                for cut in range(len(word) - 1, 3, -1)
                if word[:cut] in self._places
            )
        terms.extend((other, _ALIKE) for other in _MEANT.get(word, ()) if other in self._places)
        return terms
