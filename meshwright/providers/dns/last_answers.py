"""File format for the DNS answers that survive a restart: the last good answers and the slices in force.

The format is JSON, `{"version": 1, "answers": [...], "in_force": [...]}`, sorted. Reading checks everything,
because a file may have been truncated or edited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, TypeAdapter, ValidationError

from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.objects import EndpointSlice
from meshwright.mesh.service import ServiceKey
from meshwright.providers.dns.records import Question, QuestionState, RecordType, Target
from meshwright.providers.dns.slices import FoundSlice, Slices
from meshwright.providers.guard import GuardedValue
from meshwright.specs.values.references import parse_address

LONG_DUE: Final = timedelta(0)


class SavedAnswersError(ValueError):
    """A file of saved answers cannot be read; the message has the reason in one clause."""


@dataclass(frozen=True, slots=True)
class SavedAnswers:
    """The saved state of each DNS question, and for each service the slices that apply."""

    states: Mapping[Question, QuestionState] = field(default_factory=dict)
    in_force: Mapping[ServiceKey, GuardedValue[Slices]] = field(default_factory=dict)


def _canonical(text: str) -> str:
    address = parse_address(text)
    if address is None:
        raise ValueError("must be an IP address of one machine")
    return address


Address = Annotated[str, AfterValidator(_canonical)]
PortNumber = Annotated[int, Field(ge=1, le=65535)]
Number = Annotated[int, Field(ge=0, le=65535)]
Text = Annotated[str, Field(min_length=1, max_length=253)]

_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class _Target:
    __pydantic_config__ = _STRICT
    priority: Number
    weight: Number
    port: PortNumber
    name: Text


@dataclass(frozen=True, slots=True)
class _Answer:
    __pydantic_config__ = _STRICT
    name: Text
    record: RecordType
    answered: AwareDatetime
    addresses: tuple[Address, ...] = ()
    targets: tuple[_Target, ...] = ()
    nameserver: str = ""


@dataclass(frozen=True, slots=True)
class _Slice:
    __pydantic_config__ = _STRICT
    name: Annotated[str, Field(min_length=1)]
    addresses: Annotated[tuple[Address, ...], Field(min_length=1)]
    ports: tuple[tuple[str, PortNumber], ...]
    said: str = ""


@dataclass(frozen=True, slots=True)
class _SavedService:
    __pydantic_config__ = _STRICT
    namespace: Text
    service: Text
    slices: tuple[_Slice, ...]


@dataclass(frozen=True, slots=True)
class _Form:
    __pydantic_config__ = _STRICT
    version: Literal[1]
    answers: tuple[_Answer, ...]
    in_force: tuple[_SavedService, ...]


_ANSWER: Final = TypeAdapter(_Answer)
_IN_FORCE: Final = TypeAdapter(_SavedService)
_FORM: Final = TypeAdapter(_Form)


def written(kept: SavedAnswers) -> bytes:
    """Return the file content for the good answers with their dates, and the slices that apply."""
    answers = (
        _Answer(
            question.name,
            question.record,
            state.answered,
            state.addresses,
            tuple(
                _Target(target.priority, target.weight, target.port, target.name) for target in state.targets
            ),
            state.nameserver,
        )
        for question, state in sorted(kept.states.items(), key=lambda item: item[0])
        if state.answered is not None
    )
    in_force = (
        _SavedService(
            key.namespace,
            key.name,
            tuple(map(_slice, guarded.in_force)),
        )
        for key, guarded in sorted(kept.in_force.items(), key=lambda item: item[0])
        if guarded.in_force
    )
    # One by one, so that other threads can run between two entries, and each line is one entry.
    first = b",\n".join(_ANSWER.dump_json(answer, exclude_defaults=True) for answer in answers)
    second = b",\n".join(
        _IN_FORCE.dump_json(saved_service, exclude_defaults=True) for saved_service in in_force
    )
    return b'{"version": 1, "answers": [\n%b\n], "in_force": [\n%b\n]}\n' % (first, second)


def read(content: bytes) -> SavedAnswers:
    """Parse the file content.

    Raises SavedAnswersError for a truncated file, another version or an invalid value.
    """
    try:
        form = _FORM.validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SavedAnswersError(f"{place}: {first['msg']}" if place else first["msg"]) from error
    return SavedAnswers(
        {Question(answer.name, answer.record): _state(answer) for answer in form.answers},
        {
            ServiceKey(Namespace(saved_service.namespace), ServiceName(saved_service.service)): GuardedValue(
                _slices(saved_service)
            )
            for saved_service in form.in_force
        },
    )


def _state(answer: _Answer) -> QuestionState:
    addresses = tuple(sorted(map(IpAddress, answer.addresses)))
    targets = (
        Target(target.priority, target.weight, Port(target.port), target.name) for target in answer.targets
    )
    known = tuple(sorted(targets))
    return QuestionState(LONG_DUE, answer.answered, addresses, known, nameserver=answer.nameserver)


def _slice(endpoint_slice: FoundSlice) -> _Slice:
    return _Slice(
        endpoint_slice.value.name,
        endpoint_slice.value.addresses,
        endpoint_slice.value.ports,
        endpoint_slice.said,
    )


def _slices(saved_service: _SavedService) -> Slices:
    service, namespace = saved_service.service, Namespace(saved_service.namespace)
    return tuple(
        FoundSlice(EndpointSlice(service, namespace, item.name, item.addresses, item.ports), item.said)
        for item in saved_service.slices
    )
