"""An engine that spoils frames: it knows the grammar of JSON-RPC and MCP, and breaks it in every
way that a peer might.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from interlock.wire.codec import encode
from interlock.wire.revisions import METHODS, NEWEST, REVISIONS
from tests.history.samples import full
from tests.protocol.frames import meta

Path = tuple[Any, ...]

STRANGE: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63, -(2**64), 10**40, 0.5, -0.0, 1e308, "",
    "x", "2.0", "1.0", "\x00", "\u2028",
    "𝄞" * 3, "a" * 300, "io.modelcontextprotocol/protocolVersion", [], {}, [[]], [None], {"": None},
    {"type": "text", "text": "x"},
    {"type": "video"}, {"jsonrpc": "2.0"}, *REVISIONS, "2099-01-01",
]  # fmt: skip # one value after the other, as many on a line as there is room for
IDS: list[Any] = [0, 1, 2, 3, 7, "1", "", 2**70, None, 1.5, True, [], {}]
BYTES = [
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xe2\x82",
    b"\xf0\x9f",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\n",
    b"\r",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
]
NUMBERS = [
    b"1e999",
    b"-1e999",
    b"NaN",
    b"Infinity",
    b"9" * 5000,
    b"0x1",
    b"01",
    b"1.",
    b".5",
    b"-",
    b"1e",
    b"1E+2",
    b"-0",
]


def corpus() -> list[Any]:
    """Every message of the protocol with every field filled in, as each revision has it, and
    answers to it.
    """
    messages: list[Any] = []
    ids = count(1)
    for method, row in METHODS.items():
        for turn, revision in enumerate(REVISIONS):
            if not row.since <= revision <= row.until:
                continue
            params = json.loads(encode(full(row.params, revision, turn), revision))
            if row.result is None:
                messages.append({"jsonrpc": "2.0", "method": method, "params": params})
                continue
            if revision == NEWEST:
                params["_meta"] = meta() | {"progressToken": turn}
            messages.append(
                {"jsonrpc": "2.0", "id": next(ids) % 8, "method": method, "params": params}
            )
            result = json.loads(encode(full(row.result, revision, turn), revision))
            messages.append({"jsonrpc": "2.0", "id": next(ids) % 8, "result": result})
    messages += [
        {
            "jsonrpc": "2.0",
            "id": n,
            "error": {"code": -32601, "message": "no", "data": {"supported": [NEWEST]}},
        }
        for n in range(4)
    ]
    messages += [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}
        for n in range(8)
    ]
    return messages


class Mutator:
    """Spoiled frames without end, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.corpus = corpus()
        self._places = [list(paths(message)) for message in self.corpus]
        self._on_trees: list[Callable[[Any, Path], Any]] = [
            self.swap, self.swap, self.drop, self.rename, self.nest, self.splice, self.splice,
            self.grow, self.other_id, self.other_method,
        ]  # fmt: skip # a list of equals
        self._on_bytes: list[Callable[[bytes], bytes]] = [
            self.truncate, self.flip, self.cut_out, self.repeat, self.insert, self.insert,
            self.doubled_key, self.number, self.batch,
        ]  # fmt: skip # a list of equals

    def frames(self, number: int) -> Iterator[bytes]:
        """So many frames; a few of them are whole, so that conversations get on."""
        for _ in range(number):
            yield self.frame()

    def frame(self) -> bytes:
        """One frame."""
        rng = self.random
        which = rng.randrange(len(self.corpus))
        tree = self.corpus[which]
        places = self._places[which]
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            tree = rng.choice(self._on_trees)(tree, rng.choice(places))
        try:
            frame = json.dumps(tree, ensure_ascii=rng.random() < 0.5, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
        except (RecursionError, ValueError):
            frame = b"[" * 5000
        if rng.random() < 0.35:
            frame = rng.choice(self._on_bytes)(frame)
        return frame

    # -- on trees: each takes a message and a place in it, and returns another message

    def swap(self, tree: Any, place: Path) -> Any:
        return put(tree, place, self.random.choice(STRANGE))

    def drop(self, tree: Any, place: Path) -> Any:
        return put(tree, place, ...)

    def rename(self, tree: Any, place: Path) -> Any:
        value = get(tree, place)
        name = self.random.choice(
            ("_meta", "params", "result", "error", "method", "id", "x", "", str(place[-1]).upper())
        )
        return (
            put(put(tree, place, ...), (*place[:-1], name), value)
            if place and isinstance(place[-1], str)
            else tree
        )

    def nest(self, tree: Any, place: Path) -> Any:
        value = get(tree, place)
        for _ in range(self.random.choice((1, 2, 40, 200))):
            value = [value] if self.random.random() < 0.5 else {"content": value}
        return put(tree, place, value)

    def splice(self, tree: Any, place: Path) -> Any:
        other = self.random.randrange(len(self.corpus))
        return put(tree, place, get(self.corpus[other], self.random.choice(self._places[other])))

    def grow(self, tree: Any, place: Path) -> Any:
        value = get(tree, place)
        if isinstance(value, str):
            return put(tree, place, value * self.random.choice((2, 50)))
        return put(tree, place, [value] * self.random.choice((2, 50)))

    def other_id(self, tree: Any, place: Path) -> Any:
        return put(tree, ("id",), self.random.choice(IDS))

    def other_method(self, tree: Any, place: Path) -> Any:
        return put(tree, ("method",), self.random.choice([*METHODS, "", "x/y", 5]))

    # -- on bytes

    def truncate(self, frame: bytes) -> bytes:
        return frame[: self.random.randrange(len(frame) + 1)]

    def flip(self, frame: bytes) -> bytes:
        spoiled = bytearray(frame)
        for _ in range(self.random.choice((1, 1, 4))):
            if spoiled:
                spoiled[self.random.randrange(len(spoiled))] ^= 1 << self.random.randrange(8)
        return bytes(spoiled)

    def cut_out(self, frame: bytes) -> bytes:
        start = self.random.randrange(len(frame) + 1)
        return frame[:start] + frame[start + self.random.choice((1, 2, 10)) :]

    def repeat(self, frame: bytes) -> bytes:
        start = self.random.randrange(len(frame) + 1)
        piece = frame[start : start + self.random.choice((1, 5, 40))]
        return frame[:start] + piece * self.random.choice((2, 100)) + frame[start:]

    def insert(self, frame: bytes) -> bytes:
        at = self.random.randrange(len(frame) + 1)
        return frame[:at] + self.random.choice(BYTES) + frame[at:]

    def doubled_key(self, frame: bytes) -> bytes:
        key = self.random.choice(
            (
                '"id":7',
                '"method":"ping"',
                '"params":{}',
                '"params":[]',
                '"jsonrpc":"2.0"',
                '"result":{}',
                '"error":null',
            )
        )
        return frame[:-1] + b"," + key.encode() + b"}"

    def number(self, frame: bytes) -> bytes:
        digits = [n for n, byte in enumerate(frame) if 48 <= byte <= 57]
        if not digits:
            return frame
        at = self.random.choice(digits)
        return frame[:at] + self.random.choice(NUMBERS) + frame[at + 1 :]

    def batch(self, frame: bytes) -> bytes:
        others = [
            json.dumps(self.random.choice(self.corpus)).encode()
            for _ in range(self.random.choice((0, 1, 3)))
        ]
        whole = b"[" + b",".join([frame, *others]) + b"]"
        return whole if self.random.random() < 0.9 else b"[" * 300 + whole + b"]" * 300


def paths(tree: Any, here: Path = ()) -> Iterator[Path]:
    """Every place in a message but the whole of it."""
    if isinstance(tree, dict):
        inside: Any = tree.items()
    elif isinstance(tree, list):
        inside = enumerate(tree)
    else:
        inside = ()
    for key, value in inside:
        yield (*here, key)
        yield from paths(value, (*here, key))


def get(tree: Any, place: Path) -> Any:
    """What stands at a place; None where an earlier spoiling has taken it away."""
    for key in place:
        if not isinstance(tree, dict | list) or (
            isinstance(tree, list) and not (isinstance(key, int) and key < len(tree))
        ):
            return None
        tree = tree.get(key) if isinstance(tree, dict) else tree[key]
    return tree


def put(tree: Any, place: Path, value: Any) -> Any:
    """The message with another value at a place, or without it where the value is ...; the message
    itself is left as it is.
    """
    if not place:
        return tree if value is ... else value
    key = place[0]
    deeper = place[1:]
    if isinstance(tree, dict):
        if deeper or value is not ...:
            return tree | {key: put(tree.get(key), deeper, value) if deeper else value}
        return {name: kept for name, kept in tree.items() if name != key}
    if isinstance(tree, list) and isinstance(key, int) and key < len(tree):
        if deeper or value is not ...:
            return [
                *tree[:key],
                put(tree[key], deeper, value) if deeper else value,
                *tree[key + 1 :],
            ]
        return tree[:key] + tree[key + 1 :]
    return tree
