"""Interleaved rounds: in each round, every peer plays every part once, and the samples stay
separate until the medians are computed."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from .cells import CELLS, Cell, Place
from .child import Child, Fault
from .load import Load, Quiet, Sample
from .messages import AADD, LIST, Hold
from .roster import PROGRAMS, Peer
from .tickets import LOCK, ticket
from .web import PATH, WebLoad, free_port

FIXED_SERVER = (sys.executable, str(PROGRAMS / "fixed_server.py"))
LOCKED_WEB = [sys.executable, str(PROGRAMS / "locked_web.py")]
FIXED_WEB = [sys.executable, str(PROGRAMS / "fixed_web.py")]
WARM = 0.08  # seconds of one warming window
PATIENT = 3  # after this many windows without gain, a program is warm
MOST_WARM = 20
Key = tuple[str, str, str]  # cell, revision, peer


@dataclass(frozen=True)
class Plan:
    """The cells that a run measures, and the durations."""

    peers: list[Peer]
    cells: list[Cell] = field(default_factory=lambda: list(CELLS))
    revisions: list[str] = field(default_factory=list)  # if empty: those of each cell
    rounds: int = 3
    seconds: float = 0.2

    def parts(self, number: int) -> Iterator[tuple[Peer, str, Place, list[Cell]]]:
        """Yield the parts of a round, each for one process of one peer: peer, revision, place and
        cells. The same part of different peers runs in close succession.

        The memory of a server hardly differs from run to run and takes long to fill: it is measured
        in the first round only.
        """
        places = dict.fromkeys(
            cell.place for cell in self.cells if not (number and isinstance(cell.request, Hold))
        )
        revisions = dict.fromkeys(revision for cell in self.cells for revision in cell.revisions)
        for place in places:
            for revision in revisions:
                if self.revisions and revision not in self.revisions:
                    continue
                cells = [
                    cell
                    for cell in self.cells
                    if cell.place == place and revision in cell.revisions
                ]
                for peer in self.peers:
                    its = [
                        cell
                        for cell in cells
                        if cell.name not in peer.lacks and peer.plays(place.role, revision)
                    ]
                    if its:
                        yield peer, revision, place, its


class Results:
    """All samples of a run."""

    def __init__(self) -> None:
        self.samples: defaultdict[Key, list[Sample]] = defaultdict(list)
        self.faults: dict[str, str] = {}

    def median(self, cell: str, revision: str, peer: str, figure: str) -> float | None:
        """Return the median over the rounds, or None if the peer has no such sample."""
        found = [
            sample[figure]
            for sample in self.samples.get((cell, revision, peer), [])
            if figure in sample
        ]
        return median(found) if found else None

    def busiest(self) -> float:
        """Return the largest share of a call's wall time, 64 in flight, in which the load generator
        itself was busy."""
        shares = [
            sample["driver"] / sample["wall"]
            for (cell, _, _), samples in self.samples.items()
            for sample in samples
            if "driver" in sample and cell in {row.name for row in CELLS if row.in_flight > 1}
        ]
        return max(shares, default=0.0)


def measure(plan: Plan) -> Results:
    """Run all rounds.

    A peer that fails in a part is reported and skipped in that part from then on.
    """
    results = Results()
    for number in range(plan.rounds):
        print(f"round {number + 1} of {plan.rounds}", file=sys.stderr)
        for peer, revision, place, cells in plan.parts(number):
            part = f"{peer.name}, {place}, {revision}"
            if part in results.faults:
                continue
            try:
                for name, sample in play(peer, revision, place, cells, plan.seconds):
                    results.samples[name, revision, peer.name].append(sample)
            except (Fault, OSError, KeyError, ValueError) as fault:
                results.faults[part] = f"{type(fault).__name__}: {fault}".strip()
                print(f"{part}: {results.faults[part]}", file=sys.stderr)
    return results


def warm(peers: list[Peer]) -> None:
    """Start each peer once, so that no measured start has to compile its files or read them from
    the disk."""
    for peer in peers:
        for catalogue in ("plain", "models") if peer.plays("server", peer.revisions[0]) else ():
            try:
                with Child(peer.command("server", catalogue), peer.environ()) as child:
                    Load(child, peer.revisions[0]).first(AADD)
            except (Fault, OSError) as fault:
                print(f"{peer.name} does not start: {fault}", file=sys.stderr)


def play(
    peer: Peer, revision: str, place: Place, cells: list[Cell], seconds: float
) -> Iterator[tuple[str, Sample]]:
    """Start one process of a peer and measure all cells it can serve; yield each with its
    sample."""
    match place.role:
        case "server":
            yield from serve(peer, revision, place, cells, seconds)
        case "web" | "held" | "guarded":
            yield from serve_web(peer, revision, place, cells, seconds)
        case "client":
            yield from obey(peer, ("client", revision, *FIXED_SERVER), cells, seconds)
        case "memory":
            yield from obey(peer, ("memory", revision), cells, seconds)
        case "web-client" | "locked-client":
            with Child(
                FIXED_WEB if place.role == "web-client" else LOCKED_WEB, peer.environ()
            ) as fixed:
                with fixed.watched():
                    port = fixed.read_line().decode().strip()  # it prints its address
                role = (place.role, revision, f"http://127.0.0.1:{port}{PATH}")
                yield from (
                    obey(peer, role, cells, seconds, WARM * 3)
                    if place.role == "web-client"
                    else wait_for(peer, role, cells)
                )


def serve(
    peer: Peer, revision: str, place: Place, cells: list[Cell], seconds: float
) -> Iterator[tuple[str, Sample]]:
    """Measure a server on its standard input and output."""
    with Child(peer.command("server", place.catalogue), peer.environ()) as child:
        load = Load(child, revision)
        start = load.first(AADD) | {"rss": child.resident() / 1e6}
        for cell in cells:
            if cell.request is LIST:
                yield cell.name, settled(lambda span: load.lists(span, expected=1000), seconds)
            elif isinstance(cell.request, Hold) or cell.request is None:
                yield cell.name, start
            else:
                yield cell.name, settled(partial(load.press, cell.request, cell.in_flight), seconds)


def serve_web(
    peer: Peer, revision: str, place: Place, cells: list[Cell], seconds: float
) -> Iterator[tuple[str, Sample]]:
    """Measure a server over HTTP."""
    port = free_port()
    token = ""
    env = {}
    if place.role == "guarded":
        token, lock = ticket(port)
        env = {LOCK: lock}
    role = "guarded" if token else "web"
    with Child(
        peer.command(role, revision, place.catalogue, str(port), place.mode), peer.environ() | env
    ) as child:
        load = WebLoad(child, port, revision, token)
        load.wait()
        for cell in cells:
            load.open(cell.in_flight)
            if isinstance(cell.request, Hold):
                yield cell.name, load.hold(cell.request)
            elif cell.request is LIST:
                yield cell.name, settled(lambda span: load.lists(span, expected=1000), seconds)
            elif cell.request is not None:
                yield (
                    cell.name,
                    settled(
                        partial(load.press, cell.request),
                        seconds * cell.stretch,
                        WARM * cell.stretch,
                    ),
                )
        load.close()


def obey(
    peer: Peer, role: tuple[str, ...], cells: list[Cell], seconds: float, span: float = WARM
) -> Iterator[tuple[str, Sample]]:
    """Measure a client with orders; `span` is the length of a warming window, in seconds."""
    with Child(peer.command(*role), peer.environ()) as child:
        with child.watched():
            child.read_line()  # it reports that it is connected
        for cell in cells:
            yield cell.name, settled(partial(ordered, child, cell.in_flight), seconds, span)


def wait_for(peer: Peer, role: tuple[str, ...], cells: list[Cell]) -> Iterator[tuple[str, Sample]]:
    """Measure how long a client waits for a few slow concurrent calls; the first ones open its
    connections."""
    with Child(peer.command(*role), peer.environ()) as child:
        with child.watched():
            child.read_line()
        for cell in cells:
            order(child, cell.in_flight, 0.01)
            began = time.perf_counter()
            made = order(child, cell.in_flight, 0.01)
            if made != cell.in_flight:
                raise child.fault(f"made {made} calls, not {cell.in_flight}")
            yield cell.name, {"wall": (time.perf_counter() - began) * 1e6}


def settled(run: Callable[[float], Sample], seconds: float, span: float = WARM) -> Sample:
    """Run short windows until several in a row are not cheaper than the best one, then return the
    sample of a whole window.

    A just-in-time compiler (Node's) makes calls five times cheaper in the first second. It would be
    unfair to stop early, and a waste to wait a second for every peer.
    """
    best = run(span)["cpu"]
    stale = 0
    for _ in range(MOST_WARM):
        cost = run(span)["cpu"]
        stale = 0 if cost < best * 0.93 else stale + 1
        best = min(best, cost)
        if stale == PATIENT:
            break
    return run(seconds)


def ordered(child: Child, in_flight: int, seconds: float) -> Sample:
    """Order a client program to make calls for some seconds; return the cost of one call."""
    with Quiet():
        # Only the client's own process counts, not the server that it starts.
        before = child.processor(alone=True)
        made = order(child, in_flight, seconds)
        cpu = (child.processor(alone=True) - before) / made / 1000
    return {"cpu": cpu, "wall": seconds * 1e6 / made}


def order(child: Child, in_flight: int, seconds: float) -> int:
    """Give one order and return how many calls were made."""
    with child.watched():
        child.write(b"%d %f\n" % (in_flight, seconds))
        return int(child.read_line())
