"""A strict reader of the YAML frontmatter of `SKILL.md` (YAML 1.2, core schema), without a YAML
package.

It reads block and flow mappings and sequences, plain, quoted and block scalars, and comments. It
refuses what does not become JSON or is read differently by different parsers: anchors and aliases,
tags, directives, merge keys, complex keys, duplicate keys, tabs that indent, several documents. A
frontmatter decides what a user approves, so one that could be read in two ways is better not read
at all.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from ..types.errors import SkillError

MOST_CHARACTERS = 65_536
"""The longest frontmatter that is read, in characters."""

_MOST_DEPTH = 32
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BLOCK_HEADER = re.compile(r"(?P<style>[|>])(?P<hints>[-+1-9]{0,2})(?:\s+#.*)?")
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f",
    "r": "\r", "e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0",
    "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "u": 4, "U": 8}
_REFUSED = {
    "&": "anchors (&name) are not supported; write the value out",
    "*": "aliases (*name) are not supported; write the value out",
    "!": "tags (!tag) are not supported",
    "%": "a value cannot begin with %; put it in quotes",
    "@": "a value cannot begin with @; put it in quotes",
    "`": "a value cannot begin with a backtick; put it in quotes",
}
_DIFFERS_IN_FLOW = ",[]{}"


def split(text: str) -> tuple[str, str]:
    """Split a `SKILL.md` into its frontmatter, without the `---` lines, and its body.

    Raises:
        SkillError: The text does not begin with frontmatter, or the frontmatter does not end.
    """
    # Not splitlines: it takes more characters for line ends than YAML does.
    lines = re.findall(r"[^\n]*\n|[^\n]+", text.removeprefix("\ufeff"))
    if not lines or lines[0].rstrip() != "---":
        raise SkillError(
            "SKILL.md must begin with YAML frontmatter: a line of three hyphens (---)."
        )
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    raise SkillError("The frontmatter of SKILL.md does not end: a second line of --- is missing.")


def read_frontmatter(text: str) -> dict[str, Any]:
    """Read the frontmatter of a `SKILL.md` as a JSON object.

    Args:
        text: The whole file.

    Returns:
        Every field that the author wrote.

    Raises:
        SkillError: There is no frontmatter, or it cannot be read. The message names the line.
    """
    front, _ = split(text)
    if len(front) > MOST_CHARACTERS:
        raise SkillError(f"The frontmatter is longer than {MOST_CHARACTERS} characters.")
    value = _Reader(front).document()
    if not isinstance(value, dict):
        raise SkillError("The frontmatter must be a mapping, with lines such as `name: refunds`.")
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal.

    True is not 1; 1 is 1.0, for JSON has one kind of number.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


class _Reader:
    """A recursive descent parser over the lines of a frontmatter; `at` is the line that is next."""

    def __init__(self, text: str) -> None:
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.at = 0
        self.depth = 0

    def document(self) -> Any:
        """Read the one value of the document."""
        if self._blank():
            return None
        value = self._block(0)
        if not self._blank():
            self._fail("this line does not belong to what stands before it; check its indentation")
        return value

    # -- block structure ---------------------------------------------------------------------------

    def _block(self, least: int) -> Any:
        """Read the node that begins at the next line, indented by `least` or more."""
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            self._fail("values are nested too deeply")
        indent = self._indent()
        if indent < least:
            self._fail("the indentation is not deep enough")
        text = self._text()
        value: Any
        if _is_item(text):
            value = self._sequence(indent)
        elif self._key(text) is not None:
            value = self._mapping(indent)
        else:
            value = self._value(text, indent - 1)
        self.depth -= 1
        return value

    def _sequence(self, indent: int) -> list[Any]:
        items: list[Any] = []
        while not self._blank() and self._indent() == indent and _is_item(self._text()):
            text = self._text()
            rest = text[1:].lstrip(" ")
            if not rest or rest.startswith("#"):
                self.at += 1
                items.append(self._block(indent + 1) if self._deeper(indent) else None)
                continue
            inner = indent + len(text) - len(rest)
            if _is_item(rest) or self._key(rest) is not None:
                self.lines[self.at] = " " * inner + rest
                items.append(self._block(inner))
            else:
                items.append(self._value(rest, indent))
        return items

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._blank() and self._indent() == indent:
            text = self._text()
            split_key = self._key(text)
            if split_key is None:
                self._fail("this should be a line such as `key: value`")
            key, rest = split_key
            if key == "<<":
                self._fail("merge keys (<<) are not supported; write the values out")
            if key in found:
                self._fail(f"the key {key!r} stands twice")
            if not rest or rest.startswith("#"):
                self.at += 1
                found[key] = self._below(indent)
            else:
                found[key] = self._value(rest, indent)
        if not self._blank() and self._indent() > indent:
            self._fail("this line is indented more than the keys before it")
        return found

    def _below(self, indent: int) -> Any:
        """Read the value of a key from the lines below it; a sequence need not be indented."""
        if self._deeper(indent):
            return self._block(indent + 1)
        if not self._blank() and self._indent() == indent and _is_item(self._text()):
            return self._sequence(indent)
        return None

    def _deeper(self, indent: int) -> bool:
        return not self._blank() and self._indent() > indent

    def _key(self, text: str) -> tuple[str, str] | None:
        """The key that a line begins with and what follows its colon; None for a line without."""
        if text == "?" or text.startswith("? "):
            self._fail("complex keys (?) are not supported")
        if text[0] in "\"'":
            end = _closing(text)
            if end is None:
                return None
            after = text[end + 1 :].lstrip()
            if not (after == ":" or after.startswith(": ")):
                return None
            key, _ = self._quoted_text(text[: end + 1])
            return key, after[1:].strip()
        if text[0] in "[{|>#":
            return None
        plain = _uncommented(text)
        place = plain.find(": ")
        if place < 0:
            if not plain.endswith(":"):
                return None
            place = len(plain) - 1
        if plain[0] in _REFUSED:
            self._fail(_REFUSED[plain[0]])
        return plain[:place].rstrip(), text[place + 1 :].strip()

    def _value(self, rest: str, indent: int) -> Any:
        """Read a value that begins on the present line; its other lines are indented beyond
        `indent`.
        """
        first = rest[0]
        if first in _REFUSED:
            self._fail(_REFUSED[first])
        if first in "|>":
            return self._block_scalar(rest, indent)
        if first in "\"'":
            text = self._gather(rest, indent, lambda so_far: _closing(so_far) is not None)
            end = _closing(text)
            if end is None:
                self._fail("the quote does not end")
            self._only_comment(text[end + 1 :])
            return self._quoted_text(text[: end + 1])[0]
        if first in "[{":
            text = self._gather(rest, indent, _is_whole_flow)
            value, end = self._flow(text, 0, 0)
            self._only_comment(text[end:])
            return value
        return self._plain(rest, indent)

    def _gather(self, rest: str, indent: int, whole: Any) -> str:
        """Join the lines of a quoted or flow value, folded as YAML folds them, until it is
        whole.
        """
        text = rest
        self.at += 1
        empty = 0
        while not whole(text):
            if self.at >= len(self.lines):
                self.at -= 1
                self._fail("the value does not end")
            line = self.lines[self.at]
            if not line.strip():
                empty += 1
                self.at += 1
                continue
            if len(line) - len(line.lstrip(" ")) <= indent:
                self._fail("the value before this line does not end")
            joint = "\n" * empty if empty else " "
            if text.endswith("\\") and _escapes_its_end(text):
                text = text[:-1] + "\n" * empty + line.strip()
            else:
                bare = text.rstrip()
                if bare != text and _escapes_its_end(bare):
                    bare += " "  # an escaped space at the end of a line stays
                text = bare + joint + line.strip()
            empty = 0
            self.at += 1
        return text

    def _plain(self, rest: str, indent: int) -> Any:
        """A plain scalar, with the lines that continue it."""
        if rest[0] in ",]}" or (rest[0] in "-?:" and rest[1:2] in ("", " ")):
            self._fail(f"a value cannot begin with {rest[0]}; put it in quotes")
        text = self._plain_line(rest)
        ended = text != rest.rstrip()
        self.at += 1
        empty = 0
        while not ended and self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                empty += 1
                self.at += 1
                continue
            if len(line) - len(line.lstrip(" ")) <= indent or line.lstrip().startswith("#"):
                break
            stripped = line.strip()
            more = self._plain_line(stripped)
            ended = more != stripped
            text += ("\n" * empty if empty else " ") + more
            empty = 0
            self.at += 1
        return self._resolved(text)

    def _plain_line(self, line: str) -> str:
        plain = _uncommented(line)
        if ": " in plain or plain.endswith(":"):
            self._fail("a value with a colon and a space must stand in quotes")
        return plain

    def _block_scalar(self, rest: str, indent: int) -> str:
        header = _BLOCK_HEADER.fullmatch(rest)
        if header is None:
            self._fail("after | or > only - or + and one digit can stand")
        hints = header["hints"]
        digits = [c for c in hints if c.isdigit()]
        if len(digits) > 1 or len(hints) - len(digits) > 1:
            self._fail("after | or > only - or + and one digit can stand")
        self.at += 1
        # An indentation that is given counts from the parent, and that of the document is 0.
        inner = max(indent, 0) + int(digits[0]) if digits else None
        lines: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            depth = len(line) - len(line.lstrip(" "))
            if line.strip(" "):
                if inner is None:
                    inner = depth
                    if depth <= indent:
                        break
                if depth < inner or depth <= indent:
                    break
            lines.append(line)
            self.at += 1
        cut = [line[inner:] if inner is not None else "" for line in lines]
        kept = len(cut)
        while kept and not cut[kept - 1]:
            kept -= 1
        body = cut[:kept]
        text = "\n".join(body) if header["style"] == "|" else _folded(body)
        if "-" in hints:
            return text
        if "+" in hints:
            # The text after the last line of the frontmatter ends with a line break that is no
            # line.
            trailing = len(cut) - kept - (1 if self.at >= len(self.lines) and cut else 0)
            return text + ("\n" if body else "") + "\n" * max(trailing, 0)
        return f"{text}\n" if body else ""

    # -- flow structure and scalars ----------------------------------------------------------------

    def _flow(self, text: str, place: int, depth: int) -> tuple[Any, int]:
        """The flow value at a place of `text`, and where it ends."""
        if depth + self.depth > _MOST_DEPTH:
            self._fail("values are nested too deeply")
        if text[place] == "[":
            return self._flow_sequence(text, place + 1, depth)
        if text[place] == "{":
            return self._flow_mapping(text, place + 1, depth)
        if text[place] in "\"'":
            end = _closing(text, place)
            if end is None:
                self._fail("the quote does not end")
            return self._quoted_text(text[place : end + 1])[0], end + 1
        if text[place] in _REFUSED:
            self._fail(_REFUSED[text[place]])
        raw, end = self._flow_plain(text, place)
        return self._resolved(raw), end

    def _flow_plain(self, text: str, place: int) -> tuple[str, int]:
        end = place
        while end < len(text) and text[end] not in _DIFFERS_IN_FLOW:
            if text[end] == ":" and text[end + 1 : end + 2] in ("", " ", ",", "]", "}", "\n"):
                break
            if text[end] == "#" and end > place and text[end - 1] in " \n":
                self._fail("a comment cannot stand within [ ] or { }")
            end += 1
        raw = text[place:end].strip()
        if raw in ("-", "?"):
            self._fail(f"a value cannot be {raw} alone; put it in quotes")
        return raw, end

    def _flow_sequence(self, text: str, place: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            place = _over_spaces(text, place)
            if text[place : place + 1] == "]":
                return items, place + 1
            if text[place : place + 1] in ("", ",", "}"):
                self._fail("a value is missing within [ ]")
            value, place = self._flow(text, place, depth + 1)
            items.append(value)
            place = _over_spaces(text, place)
            if text[place : place + 1] == ",":
                place += 1
            elif text[place : place + 1] != "]":
                self._fail("a comma or ] is missing")

    def _flow_mapping(self, text: str, place: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        while True:
            place = _over_spaces(text, place)
            if text[place : place + 1] == "}":
                return found, place + 1
            key, place = self._flow_key(text, place)
            if key in found:
                self._fail(f"the key {key!r} stands twice")
            place = _over_spaces(text, place)
            value = None
            if text[place : place + 1] == ":":
                place = _over_spaces(text, place + 1)
                if text[place : place + 1] not in ("", ",", "}"):
                    value, place = self._flow(text, place, depth + 1)
                    place = _over_spaces(text, place)
            found[key] = value
            if text[place : place + 1] == ",":
                place += 1
            elif text[place : place + 1] != "}":
                self._fail("a comma or } is missing")

    def _flow_key(self, text: str, place: int) -> tuple[str, int]:
        first = text[place : place + 1]
        if first and first in "\"'":
            end = _closing(text, place)
            if end is None:
                self._fail("the quote does not end")
            return self._quoted_text(text[place : end + 1])[0], end + 1
        if not first or first in "[{,]" or first in _REFUSED:
            self._fail("a key is missing within { }")
        key, end = self._flow_plain(text, place)
        if key == "<<":
            self._fail("merge keys (<<) are not supported; write the values out")
        return key, end

    def _quoted_text(self, text: str) -> tuple[str, int]:
        """The text within quotes, which stand at both ends; line folds were made already."""
        if text[0] == "'":
            return text[1:-1].replace("''", "'"), len(text)
        parts: list[str] = []
        place = 1
        while place < len(text) - 1:
            char = text[place]
            if char != "\\":
                parts.append(char)
                place += 1
                continue
            letter = text[place + 1]
            if letter in _ESCAPES:
                parts.append(_ESCAPES[letter])
                place += 2
                continue
            width = _HEX_ESCAPES.get(letter)
            digits = text[place + 2 : place + 2 + width] if width else ""
            if not width or len(digits) != width or not re.fullmatch(r"[0-9a-fA-F]+", digits):
                self._fail(f"\\{letter} is no escape")
            point = int(digits, 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                self._fail(f"\\{letter}{digits} is no character")
            parts.append(chr(point))
            place += 2 + width
        return "".join(parts), len(text)

    def _resolved(self, text: str) -> Any:
        """What a plain scalar means in the core schema."""
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            if len(text) > 400:
                self._fail("the number is too long; put it in quotes")
            return int(text)
        if _OCTAL.fullmatch(text):
            return int(text[2:], 8)
        if _HEX.fullmatch(text):
            return int(text[2:], 16)
        if _NOT_FINITE.fullmatch(text):
            self._fail(f"{text} is no number that JSON has; put it in quotes")
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                self._fail(f"{text} is no number that JSON has; put it in quotes")
            return number
        return text

    # -- lines -------------------------------------------------------------------------------------

    def _blank(self) -> bool:
        """Go over empty lines and comments; whether nothing follows."""
        while self.at < len(self.lines):
            text = self.lines[self.at].strip()
            if text and not text.startswith("#"):
                return False
            self.at += 1
        return True

    def _indent(self) -> int:
        line = self.lines[self.at]
        if line.lstrip(" ").startswith("\t"):
            self._fail("a tab cannot indent a line; use spaces")
        return len(line) - len(line.lstrip(" "))

    def _text(self) -> str:
        text = self.lines[self.at].strip()
        if text == "..." or text.startswith("--- ") or text == "---":
            self._fail("only one document can stand in a frontmatter")
        if text.startswith("%"):
            self._fail("directives (%) are not supported")
        return text

    def _only_comment(self, rest: str) -> None:
        if rest.strip() and not re.match(r"\s+#", rest):
            self.at -= 1
            self._fail(f"{rest.strip()!r} stands after the end of the value")

    def _fail(self, why: str) -> NoReturn:
        # The line of the opening --- is line 1 of the file.
        line = min(self.at, len(self.lines) - 1) + 2
        raise SkillError(f"The frontmatter of SKILL.md cannot be read, line {line}: {why}.")


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _uncommented(text: str) -> str:
    found = re.search(r"\s#", text)
    return (text[: found.start()] if found else text).rstrip()


def _closing(text: str, place: int = 0) -> int | None:
    """Where the quote that opens at a place closes; None where it does not."""
    quote = text[place]
    at = place + 1
    while at < len(text):
        if text[at] == "\\" and quote == '"':
            at += 2
            continue
        if text[at] == quote:
            if quote == "'" and text[at + 1 : at + 2] == "'":
                at += 2
                continue
            return at
        at += 1
    return None


def _escapes_its_end(text: str) -> bool:
    """Whether a value's lines so far end within double quotes, in a backslash that is not
    escaped.
    """
    backslashes = len(text) - len(text.rstrip("\\"))
    return backslashes % 2 == 1 and _open_quote(text) == '"'


def _open_quote(text: str) -> str:
    """The quote that is open at the end of a quoted or flow value's lines so far; "" for none."""
    place = 0
    while place < len(text):
        if text[place] in "\"'" and (place == 0 or _opens_quote(text, place)):
            end = _closing(text, place)
            if end is None:
                return text[place]
            place = end
        place += 1
    return ""


def _is_whole_flow(text: str) -> bool:
    """Whether every bracket that was opened is closed."""
    depth = 0
    place = 0
    while place < len(text):
        char = text[place]
        if char in "\"'" and _opens_quote(text, place):
            end = _closing(text, place)
            if end is None:
                return False
            place = end
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth == 0:
                return True
        place += 1
    return False


def _opens_quote(text: str, place: int) -> bool:
    """Whether a quote character begins a value; within a plain one, as in `it's`, it is a
    letter.
    """
    before = text[:place].rstrip()
    return not before or before[-1] in "[{,:"


def _over_spaces(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \n\t":
        place += 1
    return place


def _folded(lines: list[str]) -> str:
    """The lines of a folded block scalar (>): single line breaks become spaces (YAML 1.2,
    8.1.3).
    """
    text = ""
    pending = 0
    previous: str | None = None
    for line in lines:
        if not line:
            pending += 1
            continue
        if previous is None:
            text = "\n" * pending + line
        elif previous[0] in " \t" or line[0] in " \t":
            text += "\n" * (pending + 1) + line
        else:
            text += ("\n" * pending if pending else " ") + line
        previous = line
        pending = 0
    return text
