"""`python -m interlock_servers.memory`: takes over the file of another memory server, writes one,
counts, and forgets for good.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from interlock import ToolError

from . import history
from .graph import CallProgress, Graph
from .jsonl import export_lines, import_lines, lines_of, words_of
from .operations import NAME
from .read_tools import counts
from .results import counted
from .texts import kept

_LONG = 86_400.0  # seconds; the user can interrupt it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 1 after an error, or if lines were left out."""
    parser = argparse.ArgumentParser(prog="python -m interlock_servers.memory", description=__doc__)
    parser.add_argument(
        "--graph",
        type=Path,
        help="the file of the graph, in place of INTERLOCK_MEMORY_DB or the user's own",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser(
        "import", help="add the JSON lines of a file, memory.jsonl of another server for instance"
    )
    taking.add_argument("file", type=Path, help="the file")
    taking.add_argument("--dry-run", action="store_true", help="only show what would happen")
    giving = commands.add_parser("export", help="write the graph as JSON lines")
    giving.add_argument(
        "file", type=Path, nargs="?", help="a new file; without it, the lines are printed"
    )
    commands.add_parser("count", help="show the size of the graph")
    forgetting = commands.add_parser(
        "forget",
        help=(
            "remove changes from the history permanently, so that deleted content cannot "
            "be restored"
        ),
    )
    which = forgetting.add_mutually_exclusive_group(required=True)
    which.add_argument("change", type=int, nargs="*", default=[], help="their numbers")
    which.add_argument("--name", help="all changes of the entity with this name")
    which.add_argument("--all", action="store_true", help="all of them")
    given = parser.parse_args(arguments)
    graph = Graph(given.graph)
    try:
        if given.command == "import":
            with given.file.open("rb") as file:
                found, _ = import_lines(
                    graph,
                    lines_of(file),
                    "command",
                    CallProgress(None, _LONG),
                    dry_run=given.dry_run,
                    whence=given.file.name,
                )
            print(words_of(found))
            return 1 if found.bad_lines else 0
        if given.command == "forget":
            return _forget(graph, given.change, given.name)
        with graph.reading(CallProgress(None, _LONG)) as db:
            if given.command == "count":
                there = counts(graph, db)
                entities = counted(there.entities, "entity", "entities")
                print(
                    f"{entities}, {counted(there.observations, 'observation')}, "
                    f"{counted(there.relations, 'relation')}"
                )
            elif given.file is None:
                sys.stdout.buffer.writelines(line for _, line in export_lines(db))
            else:
                with given.file.open("xb") as file:
                    file.writelines(line for _, line in export_lines(db))
    except (ToolError, OSError) as bad:
        print(bad, file=sys.stderr)
        return 1
    finally:
        graph.close()
    return 0


def _forget(graph: Graph, ids: list[int], name: str | None) -> int:
    with graph.reading(CallProgress(None, _LONG)) as db:
        known = history.changes_of(db, name and kept(name, NAME, graph.limits.name))
    gone, clean = history.forget(graph, ids or known, CallProgress(None, _LONG))
    print(
        f"{counted(gone, 'change is', 'changes are')} forgotten "
        f"permanently.{'' if clean else f' {history.TRACES}'}"
    )
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
