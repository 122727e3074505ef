"""Validation of messages by the rules of their fields.

A message type is prepared once, for its first message: fields with rules get a closure, and trees without any
rule are skipped as a whole. A message inside an Any is checked as part of the message around it.
"""

from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pool, duration_pb2, message_factory, wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import DecodeError, Message

from meshwright.sidecars.envoy.validation.code import CODE
from meshwright.sidecars.envoy.validation.faults import Fault, Way, fault
from meshwright.sidecars.envoy.validation.rules import Rule, UnknownRuleError, refuse_others, scalar_rules
from protos.udpa.annotations import sensitive_pb2
from protos.validate import validate_pb2

_ANY: Final = any_pb2.Any.DESCRIPTOR.full_name
_DURATION: Final = duration_pb2.Duration.DESCRIPTOR.full_name
_WRAPPERS: Final = frozenset(
    item.full_name for item in wrappers_pb2.DESCRIPTOR.message_types_by_name.values()
)
"""Types that wrap one value; a rule for a number or a text on a field of such a type is about this value."""
_PART_BYTES: Final = 2048
_REMEMBERED: Final = 32 * 1024
_DIGEST_BYTES: Final = 16

_Value = Any
"""The value of a field; the descriptor determines its type."""
_Rules = Any
"""A message of `validate_pb2`: FieldRules, or the rules of one kind such as StringRules."""
_Check = Callable[[_Value, Way, list[Fault]], None]
_Absent = tuple[Callable[[Any], bool], str, str]
"""A test whether a message lacks a field, the name of the field, and the text of the fault."""


class _ValidParts:
    """Small parts of messages that were valid, because most of them are in the next resource again.

    Encoding a part takes a tenth of the time of checking it. Only digests are kept. Above the bound all of
    them are dropped.
    """

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def __contains__(self, digest: bytes) -> bool:
        """Return whether a part with this digest was added as valid."""
        return digest in self._digests

    def add(self, digest: bytes) -> None:
        """Add a valid part by digest; a large part has an empty digest, and is left out."""
        if not digest:
            return
        if len(self._digests) >= _REMEMBERED:
            self._digests.clear()
        self._digests.add(digest)


def _digest(part: bytes, kind: str) -> bytes:
    """Return a digest of an encoded message of this kind; empty for a large one."""
    if len(part) > _PART_BYTES:
        return b""
    return blake2b(b"%b %b" % (kind.encode(), part), digest_size=_DIGEST_BYTES).digest()


_right: Final = _ValidParts()


def faults(message: Message) -> tuple[Fault, ...]:
    """Return all faults for which Envoy would refuse `message`.

    Raises UnknownRuleError for a rule of the API that this package does not know (a test prepares all types).
    """
    result: list[Fault] = []
    check = _message_check(message.DESCRIPTOR)
    if check is not None:
        check(message, None, result)
    return tuple(result)


def prepare(descriptors: Iterable[Descriptor]) -> frozenset[str]:
    """Prepare the checks of message types and of all their field types; return the names of the types.

    Raises UnknownRuleError.
    """
    known = frozenset[Descriptor]().union(*map(_closure, descriptors))
    for descriptor in known:
        _message_check(descriptor)
        _fields(descriptor)
    return frozenset(descriptor.full_name for descriptor in known)


def _option(descriptor: Descriptor | FieldDescriptor | OneofDescriptor, option: FieldDescriptor) -> _Value:
    """Return the value of an option of a type or field in Envoy's API, or None."""
    options: _Value = descriptor.GetOptions()
    return options.Extensions[option] if options.HasExtension(option) else None


@cache
def _closure(root: Descriptor) -> frozenset[Descriptor]:
    """Return a message type and all types of its fields."""
    descriptors = {root}
    waiting = [root]
    while waiting:
        inner = {field.message_type for field in waiting.pop().fields if field.message_type} - descriptors
        descriptors |= inner
        waiting.extend(inner)
    return frozenset(descriptors)


@cache
def _matters(root: Descriptor) -> bool:
    """Return whether messages of a type can have faults at all."""
    return any(
        descriptor.full_name == _ANY
        or descriptor.full_name in CODE
        or any(_option(field, validate_pb2.rules) is not None for field in descriptor.fields)
        or any(_option(oneof, validate_pb2.required) for oneof in descriptor.oneofs)
        for descriptor in _closure(root)
    )


@cache
def _message_check(descriptor: Descriptor) -> _Check | None:
    """Return the check of a message type; None without rules.

    Types may contain themselves, so fields are prepared for the first message of the type.
    """
    if any(_option(descriptor, item) is not None for item in (validate_pb2.disabled, validate_pb2.ignored)):
        raise UnknownRuleError(f"{descriptor.full_name} is not to be validated")
    if descriptor.full_name == _ANY:
        return _check_any
    if not _matters(descriptor):
        return None
    code = CODE.get(descriptor.full_name)

    def check(message: Message, way: Way, result: list[Fault]) -> None:
        by_number, absent = _fields(descriptor)
        for field, value in message.ListFields():
            one = by_number.get(field.number)
            if one is not None:
                one(value, way, result)
        for lacks, name, expected in absent:
            if lacks(message):
                result.append(fault((way, name, None), expected))
        if code is not None:
            code(message, way, result)

    return check


@cache
def _fields(descriptor: Descriptor) -> tuple[dict[int, _Check], tuple[_Absent, ...]]:
    """Return the checks of a message type: by field number for present fields, and for missing fields."""
    checks = {field.number: _field_check(field) for field in descriptor.fields}
    required = [oneof for oneof in descriptor.oneofs if _option(oneof, validate_pb2.required)]
    absent = [
        *map(_no_choice, required),
        *(one for field in descriptor.fields for one in _when_absent(field)),
    ]
    return {number: check for number, check in checks.items() if check is not None}, tuple(absent)


def _no_choice(oneof: OneofDescriptor) -> _Absent:
    name = oneof.name
    choices = ", ".join(field.name for field in oneof.fields)
    return lambda message: message.WhichOneof(name) is None, name, f"is missing; must be one of {choices}"


def _when_absent(field: FieldDescriptor) -> list[_Absent]:
    """Return the checks for a missing field. In a oneof only the present field has rules."""
    rules, kind = _rules(field)
    name = field.name
    if field.containing_oneof is not None:
        return []
    if rules.message.required or getattr(kind, "required", False):
        return [(lambda message: not message.HasField(name), name, "is missing")]
    if kind is None or getattr(kind, "ignore_empty", False) or (field.has_presence and not field.is_repeated):
        return []
    if field.is_repeated:
        fewest = getattr(kind, "min_items", 0) or getattr(kind, "min_pairs", 0)
        return [(lambda message: not getattr(message, name), name, "must not be empty")] if fewest else []
    return [
        (lambda message: not getattr(message, name), name, expected)
        for test, expected in scalar_rules(field, kind)
        if not test(field.default_value)
    ]


def _rules(field: FieldDescriptor) -> tuple[_Rules, _Rules]:
    """Return a field's validation rules, and those of the field's kind (such as StringRules) or None."""
    return _split(_option(field, validate_pb2.rules) or validate_pb2.FieldRules())


def _split(rules: _Rules) -> tuple[_Rules, _Rules]:
    kind = rules.WhichOneof("type")
    return rules, None if kind is None else getattr(rules, kind)


def _field_check(field: FieldDescriptor) -> _Check | None:
    """Return the check of a field that is present; None without rules."""
    rules, kind = _rules(field)
    if field.is_repeated:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            return _map_check(field, inner, kind)
        return _list_check(field, kind)
    one = _value_check(field, rules, kind)
    if one is None:
        return None
    name = field.name
    return lambda value, way, result: one(value, (way, name, None), result)


def _value_check(field: FieldDescriptor, rules: _Rules, kind: _Rules) -> _Check | None:
    """Return the check of one value of a field (for a list: of one element); None without rules."""
    if kind is not None and kind.DESCRIPTOR.name == "AnyRules":
        # `_when_absent` checks `required`. Other rules of an Any are about its type, and not known here.
        refuse_others(kind, "required")
        kind = None
    inner = field.message_type
    below = None if inner is None or rules.message.skip else _message_check(inner)
    if kind is None:
        return below
    wrapped = inner is not None and inner.full_name in _WRAPPERS
    if inner is not None and not wrapped and inner.full_name != _DURATION:
        raise UnknownRuleError(f"{kind.DESCRIPTOR.name} on {field.full_name}, a {inner.full_name}")
    hidden = bool(_option(field, sensitive_pb2.sensitive))
    own = _scalar_check(scalar_rules(field, kind), hidden=hidden, wrapped=wrapped)
    if below is None:
        return own

    def both(value: _Value, way: Way, result: list[Fault]) -> None:
        own(value, way, result)
        below(value, way, result)

    return both


def _scalar_check(rules: tuple[Rule, ...], *, hidden: bool, wrapped: bool) -> _Check:
    def check(value: _Value, way: Way, result: list[Fault]) -> None:
        plain = value.value if wrapped else value
        for test, expected in rules:
            if not test(plain):
                result.append(fault(way, expected, plain, hidden=hidden))

    return check


def _list_check(field: FieldDescriptor, kind: _Rules) -> _Check | None:
    """Return the check of a list. The list itself has few rules, so they are checked for every list."""
    if kind is None:
        kind = validate_pb2.RepeatedRules()
    refuse_others(kind, "min_items", "max_items", "unique", "items", "ignore_empty")
    fewest, most, unique = kind.min_items, kind.max_items, kind.unique
    one = _value_check(field, *_split(kind.items))
    if one is None and not (fewest or most or unique):
        return None
    name = field.name
    item = one or _accept
    if one is not None and field.message_type is not None:
        item = _remembering(one, field.message_type)

    def check(values: _Value, way: Way, result: list[Fault]) -> None:
        if len(values) < fewest:
            result.append(fault((way, name, None), f"must have at least {fewest} elements", len(values)))
        if most and len(values) > most:
            result.append(fault((way, name, None), f"must have at most {most} elements", len(values)))
        if unique and len(set(values)) < len(values):
            result.append(fault((way, name, None), "must not contain an element twice"))
        for index, value in enumerate(values):
            item(value, (way, name, index), result)

    return check


def _remembering(one: _Check, inner: Descriptor) -> _Check:
    """Return a check of messages in a list, in which equal valid messages are checked only once."""
    name = inner.full_name

    def check(value: _Value, way: Way, result: list[Fault]) -> None:
        # Without a fixed order of map entries, equal messages could have different digests.
        digest = _digest(value.SerializeToString(deterministic=True), name)
        if digest in _right:
            return
        before = len(result)
        one(value, way, result)
        if len(result) == before:
            _right.add(digest)

    return check


def _accept(value: _Value, way: Way, result: list[Fault]) -> None:
    """Accept an element of a list without rules."""


def _map_check(field: FieldDescriptor, entry_type: Descriptor, kind: _Rules) -> _Check | None:
    if kind is None:
        kind = validate_pb2.MapRules()
    refuse_others(kind, "min_pairs", "keys", "values", "ignore_empty")
    fewest, entry = kind.min_pairs, entry_type.fields_by_name
    of_key = _value_check(entry["key"], *_split(kind.keys))
    of_value = _value_check(entry["value"], *_split(kind.values))
    if of_key is None and of_value is None and not fewest:
        return None
    name = field.name

    def check(pairs: _Value, way: Way, result: list[Fault]) -> None:
        if len(pairs) < fewest:
            result.append(fault((way, name, None), f"must have at least {fewest} entries", len(pairs)))
        # Sorted, because protobuf leaves the order of a map open, and the faults must be the same each time.
        for key in sorted(pairs):
            if of_key is not None:
                of_key(key, (way, name, key), result)
            if of_value is not None:
                of_value(pairs[key], (way, name, key), result)

    return check


def _check_any(packed: any_pb2.Any, way: Way, result: list[Fault]) -> None:
    kind, part = packed.type_url, packed.value
    digest = _digest(part, kind)
    if digest in _right:
        return
    before = len(result)
    # `result` has the faults of the whole message, so only a longer list means that this part has one.
    problem, message = _unpacked(kind, part)
    if message is None:
        result.append(fault(way, problem, kind))
        return
    check = _message_check(message.DESCRIPTOR)
    if check is not None:
        check(message, way, result)
    if len(result) == before:
        _right.add(digest)


def _unpacked(type_url: str, value: bytes) -> tuple[str, Message | None]:
    """Return the message in an Any; else the text of the fault and None."""
    made = _class(type_url.rpartition("/")[2])
    if made is None:
        return "must contain a message of a known type", None
    try:
        return "", made.FromString(value)
    except DecodeError:
        return "must contain a message of the type in type_url", None


@cache
def _class(name: str) -> type[Message] | None:
    try:
        return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))
    except KeyError:
        return None
