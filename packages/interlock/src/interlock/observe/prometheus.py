"""Metrics in the text format of Prometheus, from one process or from several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from .meters import BOUNDARIES, Labels, Meters

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_DURATION = "mcp_server_operation_duration_seconds"
_HELP = "How long requests took, by method and by the name of the tool or prompt."
_OWN = "A counter of the server's author."


class Sample(Struct, array_like=True, frozen=True):
    """One value: the end of the metric's name, such as `_bucket`, labels and the value."""

    suffix: str
    labels: Labels
    value: float


class Metric(Struct, array_like=True):
    """A metric with its values.

    Attributes:
        name: Its name.
        kind: "counter", "gauge" or "histogram".
        help: What it says.
        samples: Its values.
    """

    name: str
    kind: str
    help: str
    samples: list[Sample]


def collect(meters: Meters) -> list[Metric]:
    """Return all metrics of this process."""
    return [*_counts(meters), *_histograms(meters), *_gauges(meters), *_author_counters(meters)]


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
        [Sample("", (("outcome", name),), value) for name, value in outcomes.items()],
    )
    yield Metric(
        "interlock_requests_in_flight",
        "gauge",
        "Requests that are running.",
        [Sample("", (), meters.in_flight)],
    )


def _histograms(meters: Meters) -> Iterable[Metric]:
    samples: list[Sample] = []
    for series, histogram in meters.histograms():
        labels = [("mcp_method_name", series.method)]
        if series.name:
            kind = "gen_ai_prompt_name" if series.method == "prompts/get" else "gen_ai_tool_name"
            labels.append((kind, series.name))
        if series.error:
            labels.append(("error_type", series.error))
        samples += _buckets(tuple(labels), histogram.counts, histogram.total)
    if samples:
        yield Metric(_DURATION, "histogram", _HELP, samples)


def _buckets(labels: Labels, counts: Sequence[int], total: float) -> Iterable[Sample]:
    seen = 0
    for bound, count in zip(BOUNDARIES, counts, strict=False):
        seen += count
        yield Sample("_bucket", (*labels, ("le", f"{bound:g}")), seen)
    seen += counts[-1]
    yield Sample("_bucket", (*labels, ("le", "+Inf")), seen)
    yield Sample("_sum", labels, total)
    yield Sample("_count", labels, seen)


def _gauges(meters: Meters) -> Iterable[Metric]:
    for gauge in meters.gauges():
        values = gauge.read()
        kind = "counter" if gauge.name.endswith("_total") else "gauge"
        samples = [Sample("", labels, value) for labels, value in values.items()]
        yield Metric(gauge.name, kind, gauge.help, samples)


def _author_counters(meters: Meters) -> Iterable[Metric]:
    found: dict[str, dict[Labels, float]] = {}
    for name, labels, value in meters.counters():
        samples = found.setdefault(f"{_without_dots(name)}_total", {})
        named = tuple((_without_dots(key), text) for key, text in labels)
        samples[named] = samples.get(named, 0.0) + value
    for name, samples in found.items():
        shown = [Sample("", labels, value) for labels, value in samples.items()]
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
            metric = found.setdefault(each.name, Metric(each.name, each.kind, each.help, []))
            metric.samples += [
                Sample(one.suffix, ((label, which), *one.labels), one.value) for one in each.samples
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
            f"{metric.name}{one.suffix}{_braced(one.labels)} {_number(one.value)}"
            for one in metric.samples
        ]
    return "\n".join([*lines, ""]).encode("utf-8", "replace")


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
