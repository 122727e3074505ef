"""The part of PromQL in our rules and dashboards: the labels of a query's answer, or its error.

https://prometheus.io/docs/prometheus/latest/querying/basics/. Prometheus itself treats a label that no series
has as empty, so a misspelt label gives an empty panel and never an error.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<range>\[[^\]]+\])|(?P<text>\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[a-zA-Z_:][\w:]*)|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/(){},=<>]))"
)
_COMPARED: Final = ("==", "!=", "<", ">", "<=", ">=")
_BINDING: Final = {"or": 1, "and": 2, "unless": 2} | dict.fromkeys(_COMPARED, 3)
_BINDING.update({"+": 4, "-": 4, "*": 5, "/": 5})
_OF_TARGETS = frozenset({"job", "namespace"})
"""Labels that Prometheus adds to all series of a scraped program."""
_AGGREGATIONS: Final = ("sum", "min", "max", "avg", "count", "topk", "bottomk")
_OF_RANGES: Final = ("rate", "increase", "max_over_time", "min_over_time", "avg_over_time")


class Wrong(ValueError):
    """A query asks for a missing metric or label; the message names it."""


@dataclass(frozen=True, slots=True)
class Series:
    """Series of one name: each label with its possible values, or None if these are unknown."""

    name: str
    counter: bool
    labels: Mapping[str, frozenset[str] | None]

    def fits(self, wanted: Mapping[str, str]) -> bool:
        """Return whether any series has these values; a value with `$` is a variable and matches all."""
        result = {name: self.labels.get(name) for name in wanted if name in self.labels}
        return len(result) == len(wanted) and all(
            values is None or wanted[name] in values or wanted[name].startswith("$")
            for name, values in result.items()
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The type of a query's answer; `labels` are None for a number."""

    labels: frozenset[str] | None
    counter: bool = False
    ranged: bool = False


def labels_of(query: str, known: Sequence[Series]) -> frozenset[str]:
    """Return the labels of a query's answer, none for a number; raise Wrong."""
    reader = _Reader(list(_tokens(query)), known)
    answer = reader.expression(1)
    if reader.tokens:
        raise Wrong(f"what is {reader.tokens[0]!r} here?")
    if answer.ranged:
        raise Wrong("a range is no answer")
    return answer.labels or frozenset()


def _tokens(query: str) -> Iterator[str]:
    at, end = 0, len(query.rstrip())
    while at < end:
        match = _TOKEN.match(query, at)
        if match is None:
            raise Wrong(f"what is {query[at:]!r} here?")
        yield match[0].strip()
        at = match.end()


@dataclass(slots=True)
class _Reader:
    tokens: list[str]
    known: Sequence[Series]

    def next(self, *wanted: str) -> str:
        if not self.tokens or (wanted and self.tokens[0] not in wanted):
            raise Wrong(f"there must be {wanted} before {self.tokens[:1]}")
        return self.tokens.pop(0)

    def has(self, *wanted: str) -> bool:
        return bool(self.tokens) and self.tokens[0] in wanted

    def expression(self, least: int) -> Answer:
        left = self.one()
        while self.tokens and (binding := _BINDING.get(self.tokens[0], 0)) >= least:
            sign = self.next()
            by = (self.next(), self.names()) if self.has("on", "ignoring") else None
            left = _joined(left, sign, self.expression(binding + 1), by)
        return left

    def one(self) -> Answer:
        token = self.next()
        if token == "(":
            answer = self.expression(1)
            self.next(")")
            return answer
        if token[0].isdigit():
            return Answer(None)
        if token in _AGGREGATIONS and self.has("by", "without", "("):
            return self.aggregated(token)
        if self.has("("):
            return self.called(token)
        return self.selected(token)

    def arguments(self) -> list[Answer]:
        self.next("(")
        answers = [self.expression(1)]
        while self.next(",", ")") == ",":
            answers.append(self.expression(1))
        return answers

    def names(self) -> frozenset[str]:
        self.next("(")
        result = [self.next()]
        while self.next(",", ")") == ",":
            result.append(self.next())
        return frozenset(result)

    def aggregated(self, how: str) -> Answer:
        by = (self.next(), self.names()) if self.has("by", "without") else None
        of = self.arguments()[-1]
        if by is None and self.has("by", "without"):
            by = (self.next(), self.names())
        labels = of.labels or frozenset()
        if how in ("topk", "bottomk"):
            return Answer(labels)
        if by is None:
            return Answer(frozenset())
        if unknown := by[1] - labels - _OF_TARGETS:
            raise Wrong(f"{by[0]} {sorted(unknown)}: there are {sorted(labels)}")
        return Answer(by[1] if by[0] == "by" else labels - by[1])

    def called(self, function: str) -> Answer:
        of = self.arguments()[-1]
        labels = of.labels or frozenset()
        if (function in _OF_RANGES) != of.ranged:
            raise Wrong(f"{function} of {'a range' if of.ranged else 'what is no range'}")
        if function in ("rate", "increase") and not of.counter:
            raise Wrong(f"{function} of what is no counter")
        if function == "histogram_quantile" and "le" not in labels:
            raise Wrong(f"histogram_quantile without le: there are {sorted(labels)}")
        if function == "absent":
            return Answer(frozenset())
        if function not in (*_OF_RANGES, "histogram_quantile"):
            raise Wrong(f"what is {function}?")
        return Answer(labels - {"le"} if function == "histogram_quantile" else labels)

    def matchers(self) -> dict[str, str]:
        result: dict[str, str] = {}
        while self.next("{", ",", "}") != "}":
            label, sign = self.next(), self.next("=", "!=")
            value = self.next().strip('"')
            if sign == "=":  # a label that is another one leaves the others, whatever they are
                result[label] = value
        return result

    def selected(self, metric: str) -> Answer:
        wanted = self.matchers() if self.has("{") else {}
        every = [series for series in self.known if series.name == metric]
        if not every:
            raise Wrong(f"there is no {metric}")
        result = [series for series in every if series.fits(wanted)]
        if not result:
            raise Wrong(f"no {metric} has {wanted}: there are {[dict(item.labels) for item in every]}")
        labels = frozenset(label for series in result for label in series.labels)
        ranged = bool(self.tokens) and self.tokens[0].startswith("[")
        if ranged:
            self.next()
        return Answer(labels, result[0].counter, ranged)


def _joined(left: Answer, sign: str, right: Answer, by: tuple[str, frozenset[str]] | None) -> Answer:
    if left.ranged or right.ranged:
        raise Wrong(f"{sign} with a range")
    if left.labels is None or right.labels is None:
        return replace(left if right.labels is None else right, counter=False)
    if sign == "or":
        return Answer(left.labels | right.labels)
    ends = [left.labels, right.labels]
    if by is not None:
        if unknown := by[1] - left.labels - right.labels:
            raise Wrong(f"{by[0]} {sorted(unknown)}: there are {sorted(left.labels | right.labels)}")
        ends = [end & by[1] if by[0] == "on" else end - by[1] for end in ends]
    if ends[0] != ends[1]:
        raise Wrong(f"{sign} of {sorted(ends[0])} and {sorted(ends[1])}: nothing fits")
    return Answer(left.labels if sign in ("and", "unless") else ends[0])
