"""Parses the JSON of PostgreSQL's EXPLAIN into the steps of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from interlock.untrusted.invisible import one_line as line

from ..engine import Plan, PlanStep

_MORE = (
    "Subplan Name",
    "Index Cond",
    "Recheck Cond",
    "Hash Cond",
    "Merge Cond",
    "TID Cond",
    "Join Filter",
    "Filter",
    "Rows Removed by Filter",
    "Sort Key",
    "Group Key",
    "Function Call",
    "CTE Name",
    "Workers Planned",
    "Sort Method",
)
_AGGREGATES = {
    "Hashed": "HashAggregate",
    "Sorted": "GroupAggregate",
    "Mixed": "MixedAggregate",
    "Plain": "Aggregate",
}


def plan_of(explained: Any) -> Plan:
    """Parse the output of EXPLAIN (FORMAT JSON): a list with one entry for each statement after
    rewriting by rules.
    """
    steps: list[PlanStep] = []
    seconds: list[float] = []
    for one in explained:
        if isinstance(one, Mapping) and "Plan" in one:
            steps.extend(_steps(one["Plan"], 0))
            if "Execution Time" in one:
                seconds.append(one["Execution Time"] / 1000)
        else:
            steps.append(PlanStep(0, "Utility statement, which has no plan"))
    return Plan(steps, round(sum(seconds), 6) if seconds else None)


def _steps(node: Mapping[str, Any], depth: int) -> Iterator[PlanStep]:
    yield PlanStep(
        depth,
        _what(node),
        rows=node.get("Plan Rows"),
        cost=node.get("Total Cost"),
        actual_rows=node.get("Actual Rows"),
        actual_ms=node.get("Actual Total Time"),
        loops=node.get("Actual Loops"),
    )
    for below in node.get("Plans", ()):
        yield from _steps(below, depth + 1)


def _what(node: Mapping[str, Any]) -> str:
    """A step in the usual notation.

    "Index Scan using orders_pkey on orders; Index Cond: (id = 5)" is one.
    """
    name = str(node.get("Node Type", "Step"))
    if name == "Aggregate":
        name = _AGGREGATES.get(node.get("Strategy", ""), name)
    if name == "ModifyTable":
        name = str(node.get("Operation", name))
    if node.get("Join Type", "Inner") != "Inner":
        name = f"{name.removesuffix(' Join')} {node['Join Type']} Join"
    if node.get("Parallel Aware"):
        name = f"Parallel {name}"
    if "Index Name" in node:
        name += f" using {node['Index Name']}"
    if "Relation Name" in node:
        table = node["Relation Name"]
        alias = node.get("Alias")
        name += f" on {table}" + (f" {alias}" if alias not in (None, table) else "")
    parts = [name]
    for key in _MORE:
        if key in node:
            value = node[key]
            parts.append(
                f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
            )
    return line("; ".join(parts), 500)
