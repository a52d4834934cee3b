"""The table of rules in the guide is the one of the code.

python -m tests.docs.test_doctor_page    # write the table into docs/guide/doctor.md
"""

from __future__ import annotations

import re

from interlock.doctor import PARTS, ExamineOptions
from tests.docs.pages import TOP

PAGE = TOP / "docs" / "guide" / "doctor.md"
BEGIN = "<!-- the table of rules begins -->\n"
END = "<!-- the table of rules ends -->"


def table() -> str:
    """The rules as a table of Markdown."""
    rows = ["| part | rule | severity | what it reports |", "|---|---|---|---|"]
    for part, rules in PARTS.items():
        rows += [f"| {part} | `{rule.id}` | {rule.severity} | {rule.title} |" for rule in rules]
    return "".join(f"{row}\n" for row in rows)


def page_with(rules: str) -> str:
    """The page with another table."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{rules}\n{END}{rest.partition(END)[2]}"


def test_the_table_of_rules_is_that_of_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page_with(table())


def test_numbers_are_as_stated() -> None:
    """The default of the watch, in seconds."""
    text = re.sub(r"\s+", " ", PAGE.read_text(encoding="utf-8"))
    options = ExamineOptions()
    assert f"watched for {options.keep_alive_seconds:g} seconds" in text
    assert f"silent for {options.idle_seconds:g} seconds" in text


if __name__ == "__main__":
    PAGE.write_text(page_with(table()), encoding="utf-8")
