"""`interlock tour`: shows every message of six conversations with servers, over real input."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from interlock import __version__

from .stage import Stage
from .walk import PARTS, Tour


def main(arguments: Sequence[str] = ()) -> int:
    """Walk through the protocol and print the outcome; the exit code is 0, or 1 if something
    failed.

    `--folder PATH` is the folder to show (by default the current one). With `--interactive` the
    person at the terminal answers the questions.
    """
    parser = argparse.ArgumentParser(
        prog="interlock tour", description="Watch the protocol at work."
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        help="the folder whose files are shown; it is not changed",
    )
    parser.add_argument(
        "--interactive", action="store_true", help="answer the servers' questions yourself"
    )
    options = parser.parse_args(list(arguments))
    if not options.folder.is_dir():
        parser.error(f"there is no folder {options.folder}")
    stage = Stage()
    interactive = options.interactive and sys.stdin.isatty()
    stage.line(
        (f"Interlock {__version__}", "bold"),
        "  three servers, both eras of the protocol, and one client",
    )
    stage.line(
        (
            "A line is a message: → from the client, ← from the server, each with its revision.",
            "dim",
        )
    )
    if options.interactive and not interactive:
        stage.remark("There is no terminal, so the tour answers by itself.")
    tour = Tour(stage, options.folder.resolve(), interactive=interactive)
    began = time.perf_counter()
    try:
        asyncio.run(tour.walk())
    except KeyboardInterrupt:
        stage.line()
        stage.failed("Interrupted.")
        return 130
    _summary(stage, tour, time.perf_counter() - began)
    return 1 if tour.faults else 0


def _summary(stage: Stage, tour: Tour, seconds: float) -> None:
    stage.heading(PARTS + 1, "Summary", f"{seconds:.1f} s")
    stage.line(
        (f"{'':36}{'revision':14}{'sent':>6}{'received':>10}{'bytes':>10}{'time':>10}", "dim"),
        indent=3,
    )
    for part in tour.parts:
        counts = part.messages.counts
        stage.line(
            f"{part.title:36}{part.revision:14}{counts.sent:>6}{counts.received:>10}"
            f"{counts.bytes:>10}{part.seconds:>8.2f} s",
            indent=3,
        )
    total = sum(part.messages.counts.sent + part.messages.counts.received for part in tour.parts)
    stage.line()
    for remark in tour.remarks[:1]:
        stage.remark(remark)
    if tour.faults:
        stage.failed(f"{tour.faults} of {tour.steps} steps failed.")
    else:
        stage.done(f"All {tour.steps} steps succeeded, in {total} messages.")
