"""A policy file that is edited: one rule or setting changes, comments and all else stay."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from interlock.store import file_lock, write_atomic

from .policy import Choice, Policy, Rule
from .rule_text import rule_toml
from .rulebook import MAX_BYTES, BadPolicy, read_policy

PATIENCE = 10.0
"""The time in seconds to wait while another program writes the file."""

Table = Literal["rules", "review"]
Setting = Literal["default", "trusted_read_only"]

_NEW = "# The policy of a host: which calls are allowed, asked about, or denied.\n"
_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_OWN_HEADER = re.compile(r"[ \t]*\[\[[ \t]*(rules|review)[ \t]*\]\]")


class PolicyChanged(BadPolicy):
    """The file is not as it was when the change was prepared."""


class _Block(Struct, frozen=True):
    """A part of a TOML file: what is above the first table, or one table.

    Attributes:
        table: "rules" or "review"; "" for any other part.
        text: Its text, with the comments directly above it.
    """

    table: str
    text: str


class PolicyFile:
    """The file of a policy, which its user edits by hand and the host on request.

    Args:
        path: The file. It is created by the first change.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> str:
        """Return the text of the file, with line feeds at the ends of its lines; "" if there is
        none.

        Raises:
            BadPolicy: It cannot be read.
        """
        return self._content().replace("\r\n", "\n")

    def _content(self) -> str:
        """The text of the file with its own line ends."""
        try:
            if self.path.stat().st_size > MAX_BYTES:
                raise BadPolicy(f"{self.path}: is larger than {MAX_BYTES >> 20} MB: split it")
            return self.path.read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError:
            raise BadPolicy(f"{self.path}: not UTF-8 text. Save it as UTF-8") from None
        except OSError as bad:
            raise BadPolicy(
                f"{self.path}: cannot be read ({bad.strerror}): check that you may read it"
            ) from None

    def policy(self) -> Policy:
        """Return the policy of the file.

        Raises:
            BadPolicy: It cannot be read, or is not a policy.
        """
        return read_policy(self.read(), str(self.path))

    def write(self, before: str, after: str) -> None:
        """Replace the text of the file. Its lines end as they did.

        Args:
            before: The text that the change was made from.
            after: The new text.

        Raises:
            PolicyChanged: The file has another text by now.
            BadPolicy: The new text is not a policy, or cannot be written.
        """
        read_policy(after, str(self.path))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with file_lock(self.path.with_name(f".{self.path.name}.turn"), patience=PATIENCE):
                content = self._content()
                if content.replace("\r\n", "\n") != before:
                    raise PolicyChanged(
                        f"{self.path}: has changed since you looked at it: look again"
                    )
                if "\r\n" in content:
                    after = after.replace("\n", "\r\n")
                write_atomic(self.path, after.encode())
        except OSError as bad:
            raise BadPolicy(
                f"{self.path}: cannot be written ({bad.strerror or bad}): check that you may "
                "write it"
            ) from None


# -- changes of the text ---------------------------------------------------------------------------


def with_rule(text: str, rule: Rule, *, table: Table = "rules", at: int | None = None) -> str:
    """Return the text with a rule added at the end of its table, or in the place of rule `at`.

    Raises:
        BadPolicy: The text cannot be edited, or has no such rule.
    """
    policy = _read(text)
    rules = list(_rules(policy, table))
    if _is_json(text):
        return _edited_json(text, table, rule, at)
    own = rule_toml(rule, table)
    blocks = _blocks(text)
    if at is None:
        rules.append(rule)
        blocks = [*blocks, _Block(table, f"{_gap(blocks)}{own}")]
    else:
        place = _place(blocks, table, at, len(rules))
        rules[at] = rule
        blocks[place] = _Block(
            table, _comments(blocks[place].text) + own + _tail(blocks[place].text)
        )
    return _checked(blocks, policy, table, rules)


def without_rule(text: str, at: int, *, table: Table = "rules") -> str:
    """Return the text without a rule and the comments directly above it.

    Raises:
        BadPolicy: The text cannot be edited, or has no such rule.
    """
    policy = _read(text)
    rules = list(_rules(policy, table))
    if _is_json(text):
        return _edited_json(text, table, None, at)
    blocks = _blocks(text)
    place = _place(blocks, table, at, len(rules))
    del rules[at]
    del blocks[place]
    return _checked(blocks, policy, table, rules)


def with_moved_rule(text: str, at: int, to: int, *, table: Table = "rules") -> str:
    """Return the text with a rule, and the comments directly above it, moved to another place.

    Raises:
        BadPolicy: The text cannot be edited, or has no such rule.
    """
    policy = _read(text)
    rules = list(_rules(policy, table))
    if not 0 <= to < len(rules):
        raise BadPolicy(f"there is no place {to + 1} among {len(rules)} {table}: look again")
    if _is_json(text):
        return _edited_json(text, table, None, at, to)
    blocks = _blocks(text)
    places = [place for place, block in enumerate(blocks) if block.table == table]
    _place(blocks, table, at, len(rules))
    moved = [blocks[place] for place in places]
    moved.insert(to, moved.pop(at))
    rules.insert(to, rules.pop(at))
    for place, block in zip(places, moved, strict=True):
        blocks[place] = _Block(block.table, f"{block.text.rstrip()}\n\n")
    blocks[-1] = _Block(blocks[-1].table, f"{blocks[-1].text.rstrip()}\n")
    return _checked(blocks, policy, table, rules)


def with_setting(text: str, name: Setting, value: Choice) -> str:
    """Return the text with another value of a setting above the rules.

    Raises:
        BadPolicy: The text cannot be edited.
    """
    policy = _read(text)
    if _is_json(text):
        found = json.loads(text.lstrip("\ufeff"))
        found[name] = value
        return _json(found)
    line = f'{name} = "{value}"'
    blocks = _blocks(text)
    pattern = re.compile(rf"^[ \t]*{name}[ \t]*=[^\n#]*?([ \t]*(?:#[^\n]*)?)$", re.MULTILINE)
    head = blocks[0]
    if pattern.search(head.text):
        after = pattern.sub(lambda found: line + found[1], head.text, count=1)
    else:
        end = "\n\n" if len(blocks) > 1 else "\n"
        after = f"{head.text.rstrip()}\n{line}{end}".lstrip("\n")
    blocks[0] = _Block("", after)
    setattr(policy, name, value)
    return _checked(blocks, policy, "rules", policy.rules)


def difference(before: str, after: str) -> list[str]:
    """Return what a change does to the text, as lines of a unified diff without its header."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "", "", lineterm="", n=2)
    return [line for line in lines if not line.startswith(("--- ", "+++ "))]


# -- parts of a text -------------------------------------------------------------------------------


def _read(text: str) -> Policy:
    return read_policy(text, "the policy file")


def _rules(policy: Policy, table: Table) -> Sequence[Rule]:
    return policy.rules if table == "rules" else policy.review


def _is_json(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def _blocks(text: str) -> list[_Block]:
    """Split a TOML text at its tables. The first block is what is above all of them.

    The comments directly above a table, without a blank line between, belong to it.
    """
    text = text or _NEW
    starts = [found.start() for found in _HEADER.finditer(text)]
    real: list[int] = []
    for start in starts:
        # The text before a bracket within an array or a long string is incomplete.
        if _is_complete(text[real[-1] if real else 0 : start]):
            real.append(start)
    cuts = [_above(text, start) for start in real]
    blocks = [_Block("", text[: cuts[0] if cuts else len(text)])]
    for (cut, end), start in zip(pairwise([*cuts, len(text)]), real, strict=True):
        header = _OWN_HEADER.match(text, start)
        blocks.append(_Block(header[1] if header else "", text[cut:end]))
    return blocks


def _above(text: str, start: int) -> int:
    """Where the comments directly above a table begin."""
    while True:
        before = text[:start].rstrip("\n") if text[:start].endswith("\n") else ""
        if not before or text[len(before) : start].count("\n") != 1:
            return start
        line = before.rpartition("\n")[2]
        if not line.lstrip().startswith("#"):
            return start
        start = len(before) - len(line)


def _is_complete(text: str) -> bool:
    try:
        tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return True


def _place(blocks: Sequence[_Block], table: Table, at: int, count: int) -> int:
    """The block of a rule."""
    places = [place for place, block in enumerate(blocks) if block.table == table]
    if not 0 <= at < count:
        raise BadPolicy(f"there is no rule {at + 1} among {count} {table}: look again")
    if len(places) != count:
        raise BadPolicy(
            f"the {table} of this file are not written as [[{table}]]: write them so, or edit "
            "the file by hand"
        )
    return places[at]


def _comments(block: str) -> str:
    """The comments above the table of a block."""
    start = next(found.start() for found in _OWN_HEADER.finditer(block) if _starts(block, found))
    return block[:start]


def _starts(block: str, found: re.Match[str]) -> bool:
    return found.start() == 0 or block[found.start() - 1] == "\n"


def _tail(block: str) -> str:
    """The blank lines and comments below the last statement of a block."""
    lines = block.splitlines(keepends=True)
    kept: list[str] = []
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        kept.insert(0, lines.pop())
    return "".join(kept)


def _gap(blocks: Sequence[_Block]) -> str:
    """The line ends between the last block and a new one."""
    last = blocks[-1].text
    if not last.strip():
        return ""
    if last.endswith("\n\n"):
        return ""
    return "\n" if last.endswith("\n") else "\n\n"


def _checked(blocks: Sequence[_Block], was: Policy, table: Table, rules: Sequence[Rule]) -> str:
    """Join the blocks, and check that the text has the old policy with this change only."""
    text = "".join(block.text for block in blocks)
    now = _read(text)
    other: Table = "review" if table == "rules" else "rules"
    if (
        tuple(_rules(now, table)) != tuple(rules)
        or tuple(_rules(now, other)) != tuple(_rules(was, other))
        or (now.default, now.trusted_read_only, now.log_required)
        != (was.default, was.trusted_read_only, was.log_required)
    ):
        raise BadPolicy("the policy file cannot be edited here: edit it by hand")
    return text


# -- JSON ------------------------------------------------------------------------------------------


def _edited_json(text: str, table: Table, rule: Rule | None, at: int | None, to: int = -1) -> str:
    """Change the list of rules in a JSON text: replace, remove, move, or add one."""
    found = json.loads(text.lstrip("\ufeff"))
    rules: list[Any] = found.setdefault(table, [])
    if at is not None and not 0 <= at < len(rules):
        raise BadPolicy(f"there is no rule {at + 1} among {len(rules)} {table}: look again")
    if rule is not None:
        own = tomllib.loads(rule_toml(rule, table))[table][0]
        if at is None:
            rules.append(own)
        else:
            rules[at] = own
    elif at is not None:
        moved = rules.pop(at)
        if to >= 0:
            rules.insert(to, moved)
    after = _json(found)
    _read(after)
    return after


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
