"""Holds our types and the table of history against the facts of the schemas, and says which rows
are missing, wrong or too many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from interlock import types as t
from interlock.wire.codec import field_span
from interlock.wire.revisions import (
    ERRORS,
    FIELDS,
    INPUT_METHODS,
    INPUT_REQUIRED_METHODS,
    METHODS,
    REVISIONS,
    TYPES,
    Side,
    error_code,
)
from tests.history import allowances
from tests.history.histories import (
    Facts,
    Ours,
    Theirs,
    alternatives,
    covers,
    is_type,
    leaves,
    lives,
    our_fields,
    our_type,
)


def complaints(facts: Facts) -> list[str]:
    """Every difference between the facts and the table, as a line that says where to write what.

    None is a proof.
    """
    proof = Proof(facts)
    return [
        *proof.revisions(),
        *proof.methods(),
        *proof.sides(),
        *proof.types(),
        *proof.missing(),
        *proof.dates(),
        *proof.inherited(),
        *proof.superfluous(),
        *proof.shapes(),
        *proof.demands(),
        *proof.reshapes(),
        *proof.errors(),
    ]


class Proof:
    """One comparison; each method is one question, and yields what is to be put right."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.order = sorted(facts)
        self.theirs = Theirs(facts)
        self.ours = Ours(self.theirs, TYPES)

    # -- words of the table

    def constant(self, revision: str) -> str:
        return f"R{self.order.index(revision) + 1}"

    def span(self, life: set[str]) -> tuple[str, str]:
        until = max(life)
        return self.constant(min(life)), "NEWEST" if until == self.order[-1] else self.constant(
            until
        )

    def row(self, life: set[str]) -> str:
        return "({}, {})".format(*self.span(life))

    def modelled(self) -> Iterator[tuple[str, type[Any], str, set[str]]]:
        """Each field that both histories have: its place, our type, its name on the wire, its
        revisions in the schemas."""
        for place, life in sorted(self.theirs.fields.items()):
            name, _, field = place.partition(".")
            kind = our_type(name)
            if kind is not None and field in our_fields(kind):
                yield place, kind, field, life

    # -- questions

    def revisions(self) -> Iterator[str]:
        """Is the list of revisions the schemas'?"""
        for revision in sorted(set(self.order) - set(REVISIONS)):
            yield f'REVISIONS: {self.constant(revision)}: Final = "{revision}"'
        for revision in sorted(set(REVISIONS) - set(self.order)):
            yield f"REVISIONS: strike {revision}, which has no schema"

    def methods(self) -> Iterator[str]:
        """Has each method its params, result, sender and dates?"""
        for method, life in sorted(self.theirs.methods.items()):
            mine = METHODS.get(method)
            params = "|".join(sorted(self.theirs.params[method]))
            result = "|".join(sorted(self.theirs.results[method] - {"InputRequiredResult"})) or None
            side = self.widest_side(method)
            since, until = self.span(life)
            dated = (
                mine
                and {
                    revision for revision in self.order if lives(revision, (mine.since, mine.until))
                }
                == life
            )
            named = (
                mine
                and mine.params.__name__ == params
                and (mine.result and mine.result.__name__) == result
            )
            if not (mine and dated and named and mine.sender == side):
                dates = f", since={since}" * (since != "R1") + f", until={until}" * (
                    until != "NEWEST"
                )
                yield (
                    f'METHODS: "{method}": MethodRow(t.{params}, {result and "t." + result}, '
                    f"{side}{dates}),"
                )
        for method in sorted(METHODS.keys() - self.theirs.methods.keys()):
            yield f'METHODS: strike "{method}", which no schema has'

    def widest_side(self, method: str) -> Side:
        senders = set().union(
            *(self.theirs.senders[method, revision] for revision in self.theirs.methods[method])
        )
        return Side.BOTH if len(senders) > 1 else Side(*senders)

    def sides(self) -> Iterator[str]:
        """Do as many sides send a method in each revision as its row says, and which methods ask or
        may be answered with a question?"""
        for (method, revision), senders in sorted(self.theirs.senders.items()):
            narrow = self.widest_side(method) is Side.BOTH and len(senders) == 1
            if narrow != ((method, revision) in allowances.SENDERS):
                yield (
                    f'allowances.SENDERS: ("{method}", {self.constant(revision)}) is sent by '
                    f"{' and '.join(sorted(senders))}"
                )
        asking = {
            method for fact in self.facts.values() for method in fact.get("input requests", ())
        }
        if asking != set(INPUT_METHODS):
            yield f"INPUT_METHODS: {sorted(asking)}"
        asked = {
            method
            for method, results in self.theirs.results.items()
            if "InputRequiredResult" in results
        }
        if asked != set(INPUT_REQUIRED_METHODS):
            yield f"INPUT_REQUIRED_METHODS: {sorted(asked)}"

    def types(self) -> Iterator[str]:
        """Have we each type, in the same revisions, and no more?"""
        for name, life in sorted(self.theirs.types.items()):
            mine = self.ours.types.get(name, set())
            if our_type(name) is None:
                fields = sorted(
                    place.partition(".")[2]
                    for place in self.theirs.fields
                    if place.startswith(f"{name}.")
                )
                yield f"types: class {name}, with the fields {', '.join(fields) or '(none)'}"
            elif mine != life:
                yield (
                    f"TYPES: t.{name}: {self.row(life)},  # can now travel in "
                    f"{', '.join(sorted(mine)) or 'none'}"
                )
        for name in t.__all__:
            kind = our_type(name)
            if (
                kind
                and not kind.__subclasses__()
                and name not in self.theirs.types
                and name not in allowances.ONLY_OURS
            ):
                yield f"types: strike {name}, which no message of any schema leads to"

    def missing(self) -> Iterator[str]:
        """Have our types each field?"""
        for place in sorted(self.theirs.fields):
            name, _, field = place.partition(".")
            kind = our_type(name)
            if kind is not None and field not in our_fields(kind):
                shape = "|".join(sorted(set().union(*self.theirs.shapes[place].values())))
                yield f"types.{name}: add the field {field} ({shape})"
                yield from self.date(place, kind, field, self.theirs.fields[place])

    def dates(self) -> Iterator[str]:
        """Has each field its dates?"""
        for place, kind, field, life in self.modelled():
            yield from self.date(place, kind, field, life)

    def date(self, place: str, kind: type[Any], field: str, life: set[str]) -> Iterator[str]:
        whole = self.theirs.types[kind.__name__]
        mine = {revision for revision in whole if lives(revision, field_span(kind, field))}
        if mine != life and not (place in allowances.WIDER and mine == whole):
            row = f'(t.{kind.__name__}, "{field}")'
            yield (
                f"FIELDS: {row}: {self.row(life)},"
                if life != whole
                else f"FIELDS: strike {row}, as old as its type"
            )
        if life != {revision for revision in whole if min(life) <= revision <= max(life)}:
            yield (
                f"FIELDS: {place} comes and goes ({', '.join(sorted(life))}), which a row "
                "cannot say"
            )

    def inherited(self) -> Iterator[str]:
        """Have our types no field that the schemas have not?"""
        for name, life in sorted(self.theirs.types.items()):
            kind = our_type(name)
            for field in sorted(our_fields(kind)) if kind else ():
                place = f"{name}.{field}"
                if place in self.theirs.fields or place in allowances.ONLY_OURS:
                    continue
                if any(lives(revision, field_span(kind, field)) for revision in life):
                    yield (
                        f'FIELDS: (t.{name}, "{field}"): NEVER,  # no schema has it; or strike '
                        "the field"
                    )

    def superfluous(self) -> Iterator[str]:
        """Would the table say the same without this row?"""
        travelling = {
            kind: life for name, life in self.theirs.types.items() if (kind := our_type(name))
        }
        for (kind, field), span in FIELDS.items():
            heirs = [
                k for k in travelling if field in our_fields(k) and _row(k, field) == (kind, field)
            ]
            if all(lives(revision, span) for k in heirs for revision in travelling[k]):
                yield f'FIELDS: strike (t.{kind.__name__}, "{field}"), which changes nothing'
        for kind in TYPES:
            if (
                Ours(self.theirs, {k: span for k, span in TYPES.items() if k is not kind}).types
                == self.ours.types
            ):
                yield f"TYPES: strike t.{kind.__name__}, which changes nothing"

    def shapes(self) -> Iterator[str]:
        """Can our fields hold what each revision puts there, and name nothing that none does?"""
        for place, kind, field, _ in self.modelled():
            if field == "_meta":
                continue
            mine = our_fields(kind)[field][0]
            shapes = self.theirs.shapes[place]
            for revision, shape in shapes.items():
                if not covers(mine, shape):
                    yield (
                        f"types.{kind.__name__}: {field} is {'|'.join(sorted(shape))} in "
                        f"{revision}, and ours cannot hold that"
                    )
            known = leaves(set().union(*shapes.values())) | allowances.ONLY_OURS.keys()
            for leaf in sorted(
                leaf for leaf in leaves(mine) - known if is_type(leaf) or leaf[0] == "'"
            ):
                yield f"types.{kind.__name__}: {field} is {leaf} in no revision"

    def demands(self) -> Iterator[str]:
        """Is what we cannot do without always there, and what a revision cannot do without seen
        to?"""
        for place, kind, field, _ in self.modelled():
            always = self.theirs.demanded(kind.__name__, field)
            whole = self.theirs.types[kind.__name__]
            needed = our_fields(kind)[field][1]
            if needed and always != whole:
                yield (
                    f"types.{kind.__name__}: {field} needs a default, for it may be absent in "
                    f"{', '.join(sorted(whole - always))}"
                )
            if always and not needed and not {field, place} & allowances.FILLED_IN.keys():
                yield (
                    f'allowances.FILLED_IN: "{place}" is demanded in '
                    f"{', '.join(sorted(always))}: who fills it in?"
                )

    def reshapes(self) -> Iterator[str]:
        """Is each change of shape that dates cannot express answered by a function, or by a
        reason?"""
        changes = {
            (place, after)
            for place, shapes in self.theirs.shapes.items()
            for before, after in pairwise(sorted(shapes))
            if not place.endswith("._meta")
            and self.undated(place, before, before, after)
            != self.undated(place, after, before, after)
        }
        for place, revision in sorted(changes - allowances.RESHAPED.keys()):
            yield (
                f'allowances.RESHAPED: ("{place}", {self.constant(revision)}): reshape it in '
                "wire/shapes.py, or say why not"
            )
        for place, revision in sorted(allowances.RESHAPED.keys() - changes):
            yield (
                f'allowances.RESHAPED: strike ("{place}", "{revision}"), whose shape does not '
                "change"
            )

    def undated(self, place: str, revision: str, *both: str) -> str:
        """The shape of a field in a revision, without the types that only one of two revisions
        has."""

        def stays(shape: set[str]) -> set[str]:
            stay = {one for one in shape if self.theirs.types.get(one, set(both)) >= set(both)}
            return {
                one[0] + "|".join(sorted(stays(alternatives(one[1:-1])))) + one[-1]
                if one[0] in "[{"
                else one
                for one in stay
            }

        return self.theirs.spelled_out(stays(self.theirs.shapes[place][revision]), revision)

    def errors(self) -> Iterator[str]:
        """Has each error its code, from the revision that brought it?"""
        first: dict[str, str] = {}
        for revision in self.order:
            for name, row in self.facts[revision]["errors"].items():
                first.setdefault(name, revision)
                code, misfortune = allowances.CODES.get(name, (None, None))
                if code != row["code"] or (misfortune and error_code(misfortune, revision) != code):
                    yield (
                        f"ERRORS: {name} is {row['code']} in {revision}; types/errors.py and, "
                        "if it has others elsewhere, a row"
                    )
        for name, (_, misfortune) in allowances.CODES.items():
            if name not in first:
                yield f"allowances.CODES: strike {name}, which no schema has"
            elif misfortune and max(ERRORS[misfortune]) != first[name]:
                yield f'ERRORS: "{misfortune}" has its last code since {self.constant(first[name])}'
        named = {misfortune for _, misfortune in allowances.CODES.values()}
        for misfortune in sorted(ERRORS.keys() - named - allowances.FROM_PROSE.keys()):
            yield f'ERRORS: strike "{misfortune}", which no schema has'


def _row(kind: type[Any], field: str) -> tuple[type[Any], str] | None:
    """The row of FIELDS that dates a field: the type's own, or that of the nearest type it inherits
    from."""
    return next(((base, field) for base in kind.__mro__ if (base, field) in FIELDS), None)
