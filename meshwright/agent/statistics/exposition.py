"""Writer of Prometheus' text format. Pure.

https://prometheus.io/docs/instrumenting/exposition_formats/. The writer is our own, because a library would
stay in the memory of an agent beside every workload. For example,
`meshwright_edge_requests_total{direction="inbound"} 17`.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]
"""Label names and values; a label with an empty value is left out."""


class Kind(enum.StrEnum):
    """Type of a metric family."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Sample:
    """One line with a value; `suffix` follows the family's name (`_bucket`, `_sum`, `_count`)."""

    labels: Labels
    value: float
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family with samples; a family without samples is left out of the page."""

    name: str
    kind: Kind
    help: str
    samples: tuple[Sample, ...]


def written(families: Iterable[Family]) -> str:
    """Return metric families in Prometheus' text format."""
    return "".join(line + "\n" for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> Iterable[str]:
    words = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {family.name} {words}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in family.samples:
        pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels if value)
        labels = f"{{{pairs}}}" if pairs else ""
        yield f"{family.name}{sample.suffix}{labels} {_number(sample.value)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 9))
