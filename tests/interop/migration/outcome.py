"""What becomes of a file of the corpus: it works, works after the marked edits, or does not."""

from __future__ import annotations

import ast
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal, NamedTuple

from interlock.cli.migrate import proving
from interlock.cli.migrate.migration import files_of, migrate, read
from interlock.cli.migrate.servers import server_objects

STUBS = Path(__file__).with_name("stubs")
PREFERRED = ("mcp", "server", "app")
_OWN = {"mcp", "mcp_types", "fastmcp", "interlock"}

Verdict = Literal["works", "after marked edits", "does not work"]


class Outcome(NamedTuple):
    """What a file became.

    Attributes:
        verdict: Whether it works.
        marks: The number of marks.
        features: The number of features that the old server lists; 0 if it was not started.
        answers: The number of answers that were compared.
        why: What differs, or why the servers were not started.
    """

    verdict: Verdict
    marks: int
    features: int
    answers: int
    why: str


def outcome(path: Path, python: str) -> Outcome:
    """Migrate a file or a package, and compare its servers if the old one starts.

    Args:
        path: The file, or the folder of a package.
        python: The Python that has the old SDK.
    """
    sources = read(files_of(path))
    changed = migrate(sources)
    for file, one in changed.items():
        compile(one.after, str(file), "exec")
    marks = sum(len(one.marks) for one in changed.values())
    fair: Verdict = "after marked edits" if marks else "works"
    servers = server_objects(sources)
    if not servers:
        return Outcome(fair, marks, 0, 0, "no server at the top level of a file")
    base = path if path.is_dir() else path.parent
    base = base.parent if (base / "__init__.py").is_file() else base
    env = {"PYTHONPATH": str(STUBS), "CORPUS_STUBS": ",".join(sorted(_missing(sources)))}
    file, name = next((one for one in servers if one[1] in PREFERRED), servers[0])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        proving.copy_with(base, {one: new.after for one, new in changed.items()}, place)
        try:
            proof = proving.prove(
                proving.old_command(python, file, name),
                proving.new_command(place / file.relative_to(base), name),
                calls=True,
                env=env,
                cwd=place,
            )
        except proving.CannotProve as bad:
            words = str(bad).strip().splitlines()
            why = f"{words[0][:150]} ... {words[-1][-250:]}"
            is_old = str(bad).startswith("The old")
            return Outcome(fair if is_old or marks else "does not work", marks, 0, 0, why)
    if proof.differences and not marks:
        fair = "does not work"
    return Outcome(fair, marks, proof.features, proof.answers, "; ".join(proof.differences))


def _missing(sources: dict[Path, str]) -> set[str]:
    """The packages that files import, besides Python's own, those of the SDKs and their own."""
    found = set()
    for text in sources.values():
        for node in ast.walk(ast.parse(text)):
            names: list[Any] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found |= {str(name).partition(".")[0] for name in names}
    own = {part for path in sources for part in path.with_suffix("").parts}
    return found - set(sys.stdlib_module_names) - _OWN - own
