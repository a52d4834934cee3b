"""Arguments that are edited as a form and as JSON: no switch and no edit of another field drops or
changes a member, whatever the schema and the values are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.inspector.stage import inspected

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

NAMES = ["state", "count", "tags", "a/b", "a~b", "__proto__", "constructor", "", "ü"]
NODES: list[Any] = [
    {},
    {"type": "string"},
    {"type": "string", "enum": ["CA", "NY"]},
    {"type": "string", "default": "CA"},
    {"type": "string", "maxLength": 3},
    {"type": "integer", "maximum": 10},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
    {"type": "object", "properties": {"deep": {"type": "string"}}},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    {"type": ["integer", "null"]},
    {"oneOf": [{"const": "CA", "title": "California"}, {"const": "NY"}]},
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["CA", "x", "a\nb", "a\r\nb", " ", '"q"', "a, b", "7", "true"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=8,
)
SCHEMAS = st.builds(
    lambda properties, required: {
        "type": "object",
        "properties": properties,
        "required": [name for name in required if name in properties],
    },
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NODES), max_size=6),
    st.lists(st.sampled_from(NAMES), unique=True),
)
EDITS = st.sampled_from(["", "CA", "12", "not a number", "yes", "[1", '{"a": 1}', "x\ny"])

# For each case the arguments after each step, as JSON text: numbers keep their digits.
RUN = """async (cases) => {
  const load = (name) => import(new URL(`kit/${name}`, document.baseURI).href);
  const { ArgumentsDraft } = await load("fields.js");
  const { parseExact } = await load("exact.js");
  return cases.map(({ schema, value, name, raw }) => {
    const first = new ArgumentsDraft(JSON.parse(schema), parseExact(value));
    const switched = first.withText(first.text);
    const edited = switched.withField(name, raw);
    const again = edited.withText(edited.text);
    const direct = first.withField(name, raw);
    return [switched, edited, again, direct].map((draft) => JSON.stringify(draft.value));
  });
}"""


def cases() -> list[dict[str, Any]]:
    """Schemas, arguments, and an edit of one field."""
    found: list[dict[str, Any]] = []

    @settings(
        max_examples=200,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(SCHEMAS, st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6), EDITS, st.data())
    def collect(
        schema: dict[str, Any], value: dict[str, Any], raw: str, data: st.DataObject
    ) -> None:
        names = sorted(schema["properties"])
        if names:
            name = data.draw(st.sampled_from(names))
            found.append({"schema": schema, "value": value, "name": name, "raw": raw})

    collect()
    return found


async def test_no_member_is_dropped_by_a_switch_or_by_an_edit(
    chromium: Any, tmp_path: Path
) -> None:
    given_cases = cases()
    assert len(given_cases) > 50
    sent = [
        {**case, "schema": json.dumps(case["schema"]), "value": json.dumps(case["value"])}
        for case in given_cases
    ]
    async with inspected(chromium, tmp_path, servers={}) as stage:
        page = await stage.page()
        outcomes = await page.evaluate(RUN, sent)
    for case, outcome in zip(given_cases, outcomes, strict=True):
        value = case["value"]
        switched, edited, again, direct = map(json.loads, outcome)
        assert switched == value, case
        for made in (edited, direct):
            others = {name: made.get(name) for name in value if name != case["name"]}
            kept = {name: inner for name, inner in value.items() if name != case["name"]}
            assert others == kept, case
        # An empty list that the schema requires is a value.
        assert set(edited) <= {*value, case["name"], *case["schema"]["required"]}, case
        assert again == edited, case
