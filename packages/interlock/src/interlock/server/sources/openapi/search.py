"""Full-text search over the operations of a large OpenAPI document."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from .operations import ApiOperation

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_PLURAL = 3  # a word of at most this length is no plural: "is", "has"
# How much a word counts by where it is.
_NAME = 4.0
_TAG = 3.0
_PATH = 3.0
_SUMMARY = 2.0
_TEXT = 1.0
_VERBS = {
    "create": "post",
    "add": "post",
    "read": "get",
    "show": "get",
    "fetch": "get",
    "list": "get",
    "update": "patch",
    "change": "patch",
    "replace": "put",
    "remove": "delete",
}


class OperationIndex:
    """Finds operations by the words of a query: rare words count more than common ones.

    Args:
        operations: The operations, with names.
    """

    def __init__(self, operations: Sequence[ApiOperation]) -> None:
        self._operations = operations
        self._by_name = {operation.name.lower(): operation for operation in operations}
        self._weights = [_weights(operation) for operation in operations]
        found = Counter(word for weights in self._weights for word in weights)
        most = len(operations)
        self._rarity = {word: math.log(1 + most / times) for word, times in found.items()}

    def find(self, query: str, limit: int) -> list[ApiOperation]:
        """Return the operations that fit a query best, the best one first.

        The name of an operation finds that one alone.
        """
        exact = self._by_name.get(query.strip().lower())
        if exact is not None:
            return [exact]
        wanted: dict[str, float] = {}
        for word in _words(query):
            wanted[word] = 1.0
            if word in _VERBS:
                wanted.setdefault(_VERBS[word], 0.5)
        scores = [
            (sum(self._score(word, weights) * wanted[word] for word in wanted), -place)
            for place, weights in enumerate(self._weights)
        ]
        best = sorted((score for score in scores if score[0] > 0), reverse=True)[:limit]
        return [self._operations[-place] for _, place in best]

    def _score(self, word: str, weights: dict[str, float]) -> float:
        return weights.get(word, 0.0) * self._rarity.get(word, 0.0)


def _weights(operation: ApiOperation) -> dict[str, float]:
    found: dict[str, float] = {}
    texts = (
        (_NAME, operation.name),
        (_NAME, operation.method),
        (_PATH, operation.path),
        (_TAG, " ".join(operation.tags)),
        (_SUMMARY, operation.summary),
        (_TEXT, operation.description),
    )
    for weight, text in texts:
        for word in _words(text):
            found[word] = max(weight, found.get(word, 0.0))
    return found


def _words(text: str) -> Iterator[str]:
    """The words of a text or of a name in any case, in lower case and in the singular."""
    for word in _WORD.findall(text):
        low = word.lower()
        if len(low) > _LONGEST_PLURAL and low.endswith("s") and not low.endswith("ss"):
            low = low[:-1]
        yield low
