"""Blanks: placeholders in an expected message for values that differ in each run, such as a sealed
state or a reference number.

A blank is written `${name}` inside any string. It captures the value at its first occurrence, and
later occurrences must have the same value. `${_}` accepts anything each time. A string that
consists of one blank stands for any JSON value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_BLANK = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_ANYTHING = "_"
_MISSING: Any = object()


class Blanks:
    """The values of the blanks in one conversation. With `inventing`, a blank that is sent before
    it has a value gets its own name as the value.
    """

    def __init__(self, *, inventing: bool = False) -> None:
        self.values: dict[str, Any] = {}
        self._inventing = inventing

    def differences(self, expected: Any, actual: Any, at: str = "") -> Iterator[str]:
        """The differences of two JSON values, one line each.

        Args:
            expected: The expected value. Its blanks capture the values in `actual`.
            actual: The actual value.
            at: The path so far.
        """
        if isinstance(expected, dict) and isinstance(actual, dict):
            for key in [*expected, *(key for key in actual if key not in expected)]:
                yield from self.differences(
                    expected.get(key, _MISSING), actual.get(key, _MISSING), f"{at}/{key}"
                )
        elif isinstance(expected, list) and isinstance(actual, list):
            for index in range(max(len(expected), len(actual))):
                yield from self.differences(
                    _item(expected, index), _item(actual, index), f"{at}/{index}"
                )
        elif isinstance(expected, str) and actual is not _MISSING and _BLANK.search(expected):
            if not self._fits(expected, actual):
                yield (
                    f"{at or '/'}: expected {_shown(expected)}{self._filled(expected)}, got "
                    f"{_shown(actual)}"
                )
        elif not _same(expected, actual):
            yield f"{at or '/'}: expected {_shown(expected)}, got {_shown(actual)}"

    def fill(self, value: Any) -> Any:
        """A JSON value with its blanks filled in.

        Raises ValueError for a blank without a value.
        """
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if not isinstance(value, str):
            return value
        if (whole := _BLANK.fullmatch(value)) is not None:
            return self._value(whole[1])
        return _BLANK.sub(lambda blank: str(self._value(blank[1])), value)

    def _value(self, name: str) -> Any:
        if name not in self.values and self._inventing:
            self.values[name] = name
        if name not in self.values:
            raise ValueError(f"the blank ${{{name}}} is to be sent before anything has filled it")
        return self.values[name]

    def _fits(self, expected: str, actual: Any) -> bool:
        whole = _BLANK.fullmatch(expected)
        if whole is not None:
            return whole[1] == _ANYTHING or _same(self.values.setdefault(whole[1], actual), actual)
        found = (
            re.fullmatch(self._pattern(expected), actual, re.DOTALL)
            if isinstance(actual, str)
            else None
        )
        if found is None:
            return False
        self.values.update(
            {
                name: text
                for name, text in zip(self._open_names(expected), found.groups(), strict=True)
            }
        )
        return True

    def _pattern(self, expected: str) -> str:
        """The expected string as a regular expression with a group for each blank without a
        value.
        """
        parts = []
        end = 0
        seen: list[str] = []
        for blank in _BLANK.finditer(expected):
            name = blank[1]
            parts.append(re.escape(expected[end : blank.start()]))
            if name == _ANYTHING:
                parts.append(".*?")
            elif name in self.values:
                parts.append(re.escape(str(self.values[name])))
            elif name in seen:
                parts.append(rf"\{seen.index(name) + 1}")
            else:
                seen.append(name)
                parts.append("(.*?)")
            end = blank.end()
        return "".join(parts) + re.escape(expected[end:])

    def _open_names(self, expected: str) -> list[str]:
        names = dict.fromkeys(blank[1] for blank in _BLANK.finditer(expected))
        return [name for name in names if name != _ANYTHING and name not in self.values]

    def _filled(self, expected: str) -> str:
        filled = {b[1]: self.values[b[1]] for b in _BLANK.finditer(expected) if b[1] in self.values}
        return (
            f" (with {', '.join(f'{name} = {_shown(value)}' for name, value in filled.items())})"
            if filled
            else ""
        )


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _MISSING


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not 1, and "1" is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict | list):
        return type(one) is type(other) and msgspec.json.encode(
            one, order="sorted"
        ) == msgspec.json.encode(other, order="sorted")
    return bool(one == other) and one is not _MISSING


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = msgspec.json.encode(value).decode("utf-8", "replace")
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
