"""Prints what becomes of each file of the corpus, and a summary.

python -m tests.interop.migration.report
"""

from __future__ import annotations

from collections import Counter

from scripts import migration_corpus, peers
from tests.interop.migration.outcome import outcome
from tests.interop.test_migration import ENTRIES, SDKS, title


def main() -> None:
    """Migrate everything, one file after another."""
    corpus = migration_corpus.install()
    counts: Counter[tuple[bool, str]] = Counter()
    for entry in ENTRIES:
        name = f"{entry['package']}-{entry['version']}"
        python = peers.INSTALLERS[SDKS[name]]()
        found = outcome(corpus / name / entry["path"], str(python))
        proved = f"{found.features} features, {found.answers} answers" if found.features else ""
        print(f"{found.verdict:20} {found.marks:3} marks  {title(entry)}  {proved}", flush=True)
        if found.why and found.verdict != "works":
            print(f"    {found.why[:300]}")
        counts[bool(entry.get("held_out")), found.verdict] += 1
    for (held_out, verdict), count in sorted(counts.items()):
        print(f"{'held out' if held_out else 'others':9} {verdict:20} {count}")


if __name__ == "__main__":
    main()
