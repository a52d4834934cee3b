"""Metrics in the text format of Prometheus, from one process or from several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Final

from msgspec import Struct

from .meters import BOUNDARIES, Labels, Meters

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_DURATION = "mcp_server_operation_duration_seconds"
_HELP = "How long requests took, by method and by the name of the tool or prompt."
_OWN = "A counter of the server's author."
_DURATIONS: Final = {
    "mcp_server_session_duration": "How long sessions and connections lasted that were ended.",
    "interlock_store_operation_duration": "How long operations of a store took that workers share.",
}


class Sample(Struct, array_like=True, frozen=True):
    """One value with its labels."""

    labels: Labels
    value: float


class Distribution(Struct, array_like=True, frozen=True):
    """One histogram with its labels: the counts of its buckets, and the sum of the durations."""

    labels: Labels
    counts: list[int]
    total: float


class Metric(Struct, array_like=True):
    """A metric with its values.

    Attributes:
        name: Its name.
        kind: "counter", "gauge" or "histogram".
        help: What it says.
        samples: Its values, unless it is a histogram.
        distributions: Its values if it is a histogram.
    """

    name: str
    kind: str
    help: str
    samples: list[Sample] = []
    distributions: list[Distribution] = []


def collect(meters: Meters) -> list[Metric]:
    """Return all metrics of this process."""
    return [
        *_counts(meters),
        *_histograms(meters),
        *_durations(meters),
        *_gauges(meters),
        *_author_counters(meters),
    ]


def _counts(meters: Meters) -> Iterable[Metric]:
    outcomes = {
        "ok": meters.ended - meters.tool_errors,
        "tool_error": meters.tool_errors,
        "error": meters.failed,
        "cancelled": meters.cancelled,
    }
    yield Metric(
        "interlock_requests_total",
        "counter",
        "Requests that have ended, by outcome.",
        [Sample((("outcome", name),), value) for name, value in outcomes.items()],
    )
    yield Metric(
        "interlock_requests_in_flight",
        "gauge",
        "Requests that are running.",
        [Sample((), meters.in_flight)],
    )


def _histograms(meters: Meters) -> Iterable[Metric]:
    found: list[Distribution] = []
    for series, histogram in meters.histograms():
        labels = [("mcp_method_name", series.method)]
        if series.name:
            kind = "gen_ai_prompt_name" if series.method == "prompts/get" else "gen_ai_tool_name"
            labels.append((kind, series.name))
        if series.error:
            labels.append(("error_type", series.error))
        found.append(Distribution(tuple(labels), histogram.counts, histogram.total))
    if found:
        yield Metric(_DURATION, "histogram", _HELP, distributions=found)


def _durations(meters: Meters) -> Iterable[Metric]:
    found: dict[str, list[Distribution]] = {}
    for name, labels, histogram in meters.durations():
        each = Distribution(labels, histogram.counts, histogram.total)
        found.setdefault(name, []).append(each)
    for name, distributions in found.items():
        help = _DURATIONS[name]
        yield Metric(f"{name}_seconds", "histogram", help, distributions=distributions)


def _gauges(meters: Meters) -> Iterable[Metric]:
    for gauge in meters.gauges():
        values = gauge.read()
        kind = "counter" if gauge.name.endswith("_total") else "gauge"
        samples = [Sample(labels, value) for labels, value in values.items()]
        yield Metric(gauge.name, kind, gauge.help, samples)


def _author_counters(meters: Meters) -> Iterable[Metric]:
    found: dict[str, dict[Labels, float]] = {}
    for name, labels, value in meters.counters():
        samples = found.setdefault(f"{_without_dots(name)}_total", {})
        named = tuple((_without_dots(key), text) for key, text in labels)
        samples[named] = samples.get(named, 0.0) + value
    for name, samples in found.items():
        shown = [Sample(labels, value) for labels, value in samples.items()]
        yield Metric(name, "counter", _OWN, shown)


def _without_dots(name: str) -> str:
    """Return a name for Prometheus, which has no dots in names."""
    return name.replace(".", "_")


def merge(processes: Mapping[str, Iterable[Metric]], label: str = "worker") -> list[Metric]:
    """Return the metrics of several processes as one, with a label that says which process.

    Args:
        processes: The metrics by the value of the label.
        label: The name of the label.
    """
    found: dict[str, Metric] = {}
    for which, metrics in processes.items():
        for each in metrics:
            metric = found.setdefault(each.name, Metric(each.name, each.kind, each.help))
            own = (label, which)
            metric.samples += [Sample((own, *one.labels), one.value) for one in each.samples]
            metric.distributions += [
                Distribution((own, *one.labels), one.counts, one.total)
                for one in each.distributions
            ]
    return list(found.values())


def exposition(metrics: Iterable[Metric]) -> bytes:
    """Return metrics as a page for Prometheus."""
    lines: list[str] = []
    for metric in metrics:
        lines += (
            f"# HELP {metric.name} {_escape(metric.help)}",
            f"# TYPE {metric.name} {metric.kind}",
        )
        lines += [
            f"{metric.name}{_braced(one.labels)} {_number(one.value)}" for one in metric.samples
        ]
        lines += [_lines(metric.name, one) for one in metric.distributions]
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


_BOUNDS: Final = (*(f"{bound:g}" for bound in BOUNDARIES), "+Inf")


def _lines(name: str, one: Distribution) -> str:
    """The lines of a histogram."""
    counts = tuple(accumulate(one.counts))
    return _format(name, one.labels) % (*counts, _number(one.total), counts[-1])


@lru_cache(maxsize=4096)  # building it costs more than filling it in
def _format(name: str, labels: Labels) -> str:
    braced = _braced(labels).replace("%", "%%")
    inner = f"{braced[1:-1]}," if labels else ""
    buckets = [f'{name}_bucket{{{inner}le="{bound}"}} %d' for bound in _BOUNDS]
    return "\n".join([*buckets, f"{name}_sum{braced} %s", f"{name}_count{braced} %d"])


def _braced(labels: Labels) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels)
    return f"{{{inner}}}"


def _quoted(text: str) -> str:
    return _escape(text).replace('"', '\\"')


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(value)
