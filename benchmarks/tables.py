"""The results as Markdown: the cost of each peer, and its ratio to the official SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from .cells import CELLS, DERIVED, GROWTHS, Cell, Derived, Figure, Growth
from .roster import Peer
from .rounds import Results

REFERENCES = ("official", "typescript")
FLOOR = "floor"
Line = tuple[Cell, str, Figure]


def tables(results: Results, peers: list[Peer]) -> str:
    """Return all tables of a run."""
    lines = list(lines_of(results))
    parts = ["## Medians", costs(results, peers, lines)]
    for reference in (peer for peer in peers if peer.name in REFERENCES):
        others = [peer for peer in peers if peer is not reference]
        if others:
            parts += [
                f"## How many times less than the {reference.title}",
                ratios(results, reference, others, lines),
            ]
    floor = next((peer for peer in peers if peer.name == FLOOR), None)
    over = [
        line
        for line in lines
        if floor and line[2] is line[0].figures[0] and cost(results, line, floor)
    ]
    if floor and over:
        parts += [
            "## How many times as much as the floor",
            burdens(results, floor, [peer for peer in peers if peer is not floor], over),
        ]
    derived = [row for row in DERIVED if any(growth(results, row, peer) for peer in peers)]
    if derived:
        body = [
            [row.title, *(times(growth(results, row, peer)) for peer in peers)] for row in derived
        ]
        parts += ["## Quotients", grid(["", *(peer.title for peer in peers)], body)]
    grown = [row for row in GROWTHS if any(exponent(results, row, peer) for peer in peers)]
    if grown:
        body = [
            [row.title, *(power(exponent(results, row, peer)) for peer in peers)] for row in grown
        ]
        parts += [
            "## Growth",
            "The exponent is 1 where ten times the work costs ten times as much.",
            grid(["", *(peer.title for peer in peers)], body),
        ]
    parts.append(
        f"The load generator was busy for at most {results.busiest():.0%} of the wall time "
        "with more than one server call in flight."
    )
    parts += [
        f"Not measured: {part}: `{words.splitlines()[0]}`" for part, words in results.faults.items()
    ]
    return "\n\n".join(parts)


def lines_of(results: Results) -> Iterator[Line]:
    """Yield the lines that have at least one sample: all of the newest revision first."""
    measured = {(cell, revision) for cell, revision, _ in results.samples}
    for revision in sorted({revision for _, revision in measured}, reverse=True):
        for cell in CELLS:
            if (cell.name, revision) in measured:
                yield from ((cell, revision, figure) for figure in cell.figures)


def costs(results: Results, peers: list[Peer], lines: list[Line]) -> str:
    """Return the table of medians."""
    body = []
    for cell, revision, figure in lines:
        values = (results.median(cell.name, revision, peer.name, figure.key) for peer in peers)
        body.append(
            [
                *label(cell, revision, figure),
                *("-" if value is None else short(value / figure.divisor) for value in values),
            ]
        )
    return grid(["cell", "revision", "figure", *(peer.title for peer in peers)], body)


def ratios(results: Results, reference: Peer, others: list[Peer], lines: list[Line]) -> str:
    """Return the table of the reference's cost divided by the cost of each other peer, for the
    first figure of each cell."""
    body = []
    for cell, revision, figure in lines:
        if figure is not cell.figures[0]:
            continue
        theirs = cost(results, (cell, revision, figure), reference)
        row = []
        for peer in others:
            own = cost(results, (cell, revision, figure), peer)
            row.append(times(theirs / own if theirs and own else None))
        body.append([*label(cell, revision, figure), *row])
    return grid(["cell", "revision", "figure", *(peer.title for peer in others)], body)


def burdens(results: Results, floor: Peer, others: list[Peer], lines: list[Line]) -> str:
    """Return the table of each peer's cost divided by the cost of the floor."""
    body = []
    for line in lines:
        least = cost(results, line, floor)
        costs = (cost(results, line, peer) for peer in others)
        body.append(
            [*label(*line), *(times(own / least if own and least else None) for own in costs)]
        )
    return grid(["cell", "revision", "figure", *(peer.title for peer in others)], body)


def cost(results: Results, line: Line, peer: Peer) -> float | None:
    """Return the median of one peer for a line."""
    cell, revision, figure = line
    return results.median(cell.name, revision, peer.name, figure.key)


def growth(results: Results, row: Derived, peer: Peer) -> float | None:
    """Return the quotient of two medians of one peer, in the newest revision that has both."""
    for revision in peer.revisions:
        keys = row.keys()
        above = results.median(row.above, revision, peer.name, keys[0])
        below = results.median(row.below, revision, peer.name, keys[1])
        if above and below:
            return above / below
    return None


def exponent(results: Results, row: Growth, peer: Peer) -> float | None:
    """Return the power of the size with which a cost of one peer grows."""
    for revision in peer.revisions:
        small = results.median(row.small, revision, peer.name, row.key)
        large = results.median(row.large, revision, peer.name, row.key)
        if small and large:
            return log(large / small) / log(row.factor)
    return None


def power(value: float | None) -> str:
    """Return an exponent, or a dash for None."""
    return "-" if value is None else f"n^{value:.2f}"


def label(cell: Cell, revision: str, figure: Figure) -> list[str]:
    """Return the first columns of a line."""
    return [f"`{cell.name}` {cell.title}", revision, f"{figure.words} {figure.unit}"]


def short(value: float) -> str:
    """Return a number with a suitable number of digits."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def times(value: float | None) -> str:
    """Return a quotient, or a dash for None."""
    return "-" if value is None else f"{short(value)}x"


def grid(head: list[str], body: list[list[str]]) -> str:
    """Return a Markdown table."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *body])
