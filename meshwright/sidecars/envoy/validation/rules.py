"""Envoy's rules for one value (`validate.rules`, protoc-gen-validate) as closures.

An unknown rule raises UnknownRuleError when its message type is prepared, so that no rule is skipped without
notice when a message is checked.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration

from protos.validate import validate_pb2

Rules = Any
"""A message of `validate_pb2` with the rules of one kind."""
Test = Callable[[Any], bool]
Rule = tuple[Test, str]
"""A test of a value, and the text of the rule (`must ...`)."""

_COMPARISONS: Final[dict[str, tuple[Callable[[Any], Test], str]]] = {
    "gt": (lambda bound: lambda value: value > bound, "above"),
    "gte": (lambda bound: lambda value: value >= bound, "at least"),
    "lt": (lambda bound: lambda value: value < bound, "below"),
    "lte": (lambda bound: lambda value: value <= bound, "at most"),
    "const": (lambda bound: lambda value: value == bound, "exactly"),
}
_WELL_KNOWN: Final = {
    (validate_pb2.KnownRegex.HTTP_HEADER_NAME, False): r"[^\x00\n\r]*",
    (validate_pb2.KnownRegex.HTTP_HEADER_VALUE, False): r"[^\x00\n\r]*",
    (validate_pb2.KnownRegex.HTTP_HEADER_NAME, True): r":?[0-9a-zA-Z!#$%&'*+.^_|~`-]+",
    (validate_pb2.KnownRegex.HTTP_HEADER_VALUE, True): r"[^\x00-\x08\x0a-\x1f\x7f]*",
}
_KNOWN_WORDS: Final = {
    validate_pb2.KnownRegex.HTTP_HEADER_NAME: "must be the name of a header",
    validate_pb2.KnownRegex.HTTP_HEADER_VALUE: "must be the value of a header, on one line",
}
_ELSEWHERE: Final = frozenset({"ignore_empty", "required", "skip", "strict"})
"""Fields that modify other rules; `messages` and `_well_known` read them."""


class UnknownRuleError(Exception):
    """Envoy's API has a validation rule that this package does not know."""


def scalar_rules(field: FieldDescriptor, rules: Rules) -> tuple[Rule, ...]:
    """Return the validation rules for a value, from one kind such as StringRules or DurationRules."""
    kind = rules.DESCRIPTOR.name
    if kind == "DurationRules":
        return tuple(_durations(rules))
    if field.enum_type is not None:
        return tuple(_enums(field.enum_type, rules))
    texts = kind in ("StringRules", "BytesRules")
    return tuple(_texts(rules) if texts else _numbers(rules))


def _texts(rules: Rules) -> Iterator[Rule]:
    for field, bound in rules.ListFields():
        match field.name:
            case "min_len":
                yield _longer(bound), "must not be empty" if bound == 1 else f"must have {bound} characters"
            case "max_len":
                yield _shorter(bound), f"must have at most {bound} characters"
            case "max_bytes":
                yield _fewer_bytes(bound), f"must have at most {bound} bytes"
            case "prefix":
                yield _begins(bound), f"must begin with {bound}"
            case "suffix":
                yield _ends(bound), f"must end with {bound}"
            case "pattern":
                yield _fits(bound), f"must match {bound}"
            case "in":
                yield _among(bound), f"must be one of {', '.join(sorted(bound))}"
            case "well_known_regex":
                yield _well_known(bound, rules.strict)
            case name:
                if name not in _ELSEWHERE:
                    raise UnknownRuleError(f"{rules.DESCRIPTOR.name}.{name}")


def _well_known(known: validate_pb2.KnownRegex, strict: bool) -> Rule:
    if (known, strict) not in _WELL_KNOWN:
        raise UnknownRuleError(f"well_known_regex {known}")
    return _fits(_WELL_KNOWN[known, strict]), _KNOWN_WORDS[known]


def _numbers(rules: Rules) -> Iterator[Rule]:
    yield from _compared(rules, lambda value: value, str)


def _durations(rules: Rules) -> Iterator[Rule]:
    for test, expected in _compared(rules, _nanoseconds, _seconds):
        yield _lasting(test), expected


def _compared(rules: Rules, measure: Callable[[Any], float], show: Callable[[Any], str]) -> Iterator[Rule]:
    """Yield the comparisons of a value with its bounds, for example `must be at least 1`.

    If the lower bound is above the upper one, the value must satisfy one of the two (protoc-gen-validate).
    """
    result: dict[str, tuple[float, Rule]] = {}
    for field, bound in rules.ListFields():
        if field.name in _ELSEWHERE:
            continue
        if field.name not in _COMPARISONS:
            raise UnknownRuleError(f"{rules.DESCRIPTOR.name}.{field.name}")
        test, words = _COMPARISONS[field.name]
        result[field.name] = (measure(bound), (test(measure(bound)), f"must be {words} {show(bound)}"))
    low, high = result.get("gt") or result.get("gte"), result.get("lt") or result.get("lte")
    if low and high and low[0] > high[0]:
        yield _either(low[1], high[1])
    else:
        yield from (rule for _, rule in result.values())


def _either(first: Rule, second: Rule) -> Rule:
    one, other = first[0], second[0]
    return lambda value: one(value) or other(value), f"{first[1]}, or {second[1]}"


def _enums(enum: EnumDescriptor, rules: Rules) -> Iterator[Rule]:
    for field, bound in rules.ListFields():
        match field.name:
            case "defined_only":
                yield _among(enum.values_by_number), f"must be a value of {enum.name}"
            case "not_in":
                yield _none_of(bound), f"must be another {enum.name}"
            case name:
                raise UnknownRuleError(f"EnumRules.{name}")


def _nanoseconds(duration: Duration) -> int:
    return duration.seconds * 10**9 + duration.nanos


def _seconds(duration: Duration) -> str:
    return f"{_nanoseconds(duration) / 10**9:g} s"


def _begins(prefix: str) -> Test:
    return lambda value: value.startswith(prefix)


def _ends(suffix: str) -> Test:
    return lambda value: value.endswith(suffix)


def _lasting(compare: Test) -> Test:
    return lambda value: compare(_nanoseconds(value))


def _longer(bound: int) -> Test:
    return lambda value: len(value) >= bound


def _shorter(bound: int) -> Test:
    return lambda value: len(value) <= bound


def _fewer_bytes(bound: int) -> Test:
    # No character takes more than four bytes: most texts need not be encoded to be counted.
    return lambda value: len(value) * 4 <= bound or len(_encoded(value)) <= bound


def _encoded(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _fits(pattern: str) -> Test:
    compiled = re.compile(pattern)
    return lambda value: compiled.fullmatch(value) is not None


def _among(allowed: Iterable[str | int]) -> Test:
    known = frozenset(allowed)
    return lambda value: value in known


def _none_of(refused: Iterable[int]) -> Test:
    known = frozenset(refused)
    return lambda value: value not in known


def refuse_others(rules: Rules, *known: str) -> None:
    """Raise UnknownRuleError for a validation rule not among the `known` names."""
    for field, _ in rules.ListFields():
        if field.name not in known:
            raise UnknownRuleError(f"{rules.DESCRIPTOR.name}.{field.name}")
