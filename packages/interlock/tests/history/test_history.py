"""The table of protocol history and our types say what the official schemas say, no more and no
less."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from interlock.wire import codec
from interlock.wire.revisions import REVISIONS
from interlock.wire.shapes import RESHAPES
from tests.history import allowances
from tests.history.histories import Facts, Theirs, our_type
from tests.history.proof import complaints
from tests.history.samples import full

FACTS: Facts = json.loads((Path(__file__).parent / "facts.json").read_text(encoding="utf-8"))


def test_the_table_is_the_schemas_history():
    """Every method, type and field of every revision, with its dates, both ways (`MRT-01` among
    them). What is missing is printed as the rows to write."""
    rows = complaints(FACTS)
    assert not rows, "the table of history is to be put right:\n" + "\n".join(rows)


def test_what_no_message_leads_to_is_known():
    """The walk over the schemas left nothing out but these definitions, each for a reason."""
    assert {
        name for fact in FACTS.values() for name in fact["unreached"]
    } == allowances.UNREACHED.keys()


def test_every_reshaping_answers_a_change():
    """No change of shape in the codec without one in the schemas."""
    assert {
        answer for answer in allowances.RESHAPED.values() if isinstance(answer, type)
    } == RESHAPES.keys()


@pytest.mark.parametrize(
    "table",
    [
        "CALLED",
        "KEPT_AS_JSON",
        "LATER",
        "ONLY_OURS",
        "WIDER",
        "FILLED_IN",
        "SENDERS",
        "RESHAPED",
        "CODES",
        "FROM_PROSE",
    ],
)
def test_every_allowance_is_needed(table, monkeypatch):
    """Without any one of them the proof complains, so that none outlives its reason."""
    entries = getattr(allowances, table)
    for key in entries:
        monkeypatch.setattr(
            allowances, table, {other: entries[other] for other in entries if other != key}
        )
        assert complaints(FACTS), f"allowances.{table}[{key!r}] is idle"


# -- the proof can fail


def doctored(revision: str, section: str, name: str, entry: object = None) -> Facts:
    """The facts with one entry of one revision changed, or struck where there is no new one."""
    facts = copy.deepcopy(FACTS)
    facts[revision][section].pop(name, None)
    if entry is not None:
        facts[revision][section][name] = entry
    return facts


R4 = "2025-11-25"
R5 = "2026-07-28"
ICON = FACTS[R5]["types"]["Icon"]
DOCTORED = [
    # what happened to the schemas, and the row that the proof must ask for
    (
        doctored(
            R5,
            "client requests",
            "tools/find",
            {"params": "FindToolsRequestParams", "result": "ListToolsResult"},
        ),
        (
            'METHODS: "tools/find": MethodRow(t.FindToolsRequestParams, t.ListToolsResult, '
            "Side.CLIENT, since=R5),"
        ),
    ),
    (
        doctored(R5, "client requests", "tools/list"),
        (
            'METHODS: "tools/list": MethodRow(t.ListToolsRequestParams, t.ListToolsResult, '
            "Side.CLIENT, until=R4),"
        ),
    ),
    (
        doctored(R4, "client requests", "ping"),
        'allowances.SENDERS: ("ping", R4) is sent by server',
    ),
    (
        doctored(R5, "types", "Icon", ICON | {"colour?": "string"}),
        "types.Icon: add the field colour (string)",
    ),
    (
        doctored(R5, "types", "Icon", ICON | {"colour?": "string"}),
        'FIELDS: (t.Icon, "colour"): (R5, NEWEST),',
    ),
    (
        doctored(
            R5,
            "types",
            "Icon",
            {"mimeType?": "string", "src": "string", "theme?": "'dark'|'light'"},
        ),
        'FIELDS: (t.Icon, "sizes"): (R4, R4),',
    ),
    (
        doctored(
            R4,
            "types",
            "Icon",
            {"src": "string"} | {"sizes?": "[string]", "theme?": "'dark'|'light'"},
        ),
        'FIELDS: (t.Icon, "mimeType"): (R5, NEWEST),',
    ),
    (
        doctored(R5, "types", "Icon", ICON | {"src": "Picture"}),
        "types: class Picture, with the fields (none)",
    ),
    (
        doctored(R5, "types", "Icon", ICON | {"theme?": "'dark'|'dim'|'light'"}),
        "types.Icon: theme is 'dark'|'dim'|'light' in 2026-07-28, and ours cannot hold that",
    ),
    (
        doctored(
            R5,
            "types",
            "Icon",
            {field.replace("src", "src?"): shape for field, shape in ICON.items()},
        ),
        "types.Icon: src needs a default, for it may be absent in 2026-07-28",
    ),
    (
        doctored(
            R5,
            "types",
            "ElicitResult",
            FACTS[R5]["types"]["ElicitResult"] | {"content?": "[string]"},
        ),
        (
            'allowances.RESHAPED: ("ElicitResult.content", R5): reshape it in wire/shapes.py, '
            "or say why not"
        ),
    ),
    (
        doctored(R5, "errors", "HeaderMismatchError", {"code": -32029}),
        (
            "ERRORS: HeaderMismatchError is -32029 in 2026-07-28; types/errors.py and, if it "
            "has others elsewhere, a row"
        ),
    ),
]


@pytest.mark.parametrize("facts, row", DOCTORED, ids=[row for _, row in DOCTORED])
def test_a_difference_is_reported_as_the_row_to_write(facts, row):
    """The proof can fail, and its words can be pasted."""
    assert row in complaints(facts)


def test_a_sixth_revision_asks_for_its_rows():
    """A revision that adds a method and takes a field away asks for just these."""
    facts = copy.deepcopy(FACTS)
    facts["2027-02-01"] = copy.deepcopy(FACTS[R5])
    facts["2027-02-01"]["server notifications"]["notifications/farewell"] = {
        "params?": "FarewellNotificationParams"
    }
    facts["2027-02-01"]["types"]["FarewellNotificationParams"] = {"words": "string"}
    del facts["2027-02-01"]["types"]["Tool"]["title?"]
    assert complaints(facts) == [
        'REVISIONS: R6: Final = "2027-02-01"',
        (
            'METHODS: "notifications/farewell": MethodRow(t.FarewellNotificationParams, None, '
            "Side.SERVER, since=R6),"
        ),
        'allowances.SENDERS: ("notifications/progress", R6) is sent by server',
        "types: class FarewellNotificationParams, with the fields words",
        'FIELDS: (t.Tool, "title"): (R3, R5),',
    ]


# -- the codec keeps to the table


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_encoded_for_a_revision_has_the_fields_of_that_revision(revision):
    """Every type with every field filled in comes out with just the fields that the revision's
    schema has."""
    theirs = Theirs(FACTS)
    for name, life in theirs.types.items():
        if revision in life:
            encoded = json.loads(codec.encode(full(our_type(name), revision), revision))
            fields = {
                place.partition(".")[2]
                for place, span in theirs.fields.items()
                if place.startswith(f"{name}.") and revision in span
            }
            wider = {
                place.partition(".")[2]
                for place in allowances.WIDER | allowances.ONLY_OURS
                if place.startswith(f"{name}.")
            }
            assert encoded.keys() - wider == fields - wider, f"{name} in {revision}"
