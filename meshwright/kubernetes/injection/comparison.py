"""Comparison of a running Pod with the same Pod injected again: the differences, field by field."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from meshwright.kubernetes.injection.api_defaults import is_filled_in, is_like_missing, key_of
from meshwright.kubernetes.injection.configuration.configuration import Identity
from meshwright.kubernetes.injection.pod_injection import TO_COME, InjectionInputs, injected
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.injection.context import own_uuid
from meshwright.sidecars.injection.names import (
    ADDED_ANNOTATION,
    INIT_CONTAINER,
    ORIGINALS_ANNOTATION,
    OWN_ANNOTATION,
    PROBES_ANNOTATION,
    REASON_ANNOTATION,
    RESOURCES_ANNOTATION,
    ROOTS_ANNOTATION,
    SCRAPED_ANNOTATION,
    SIDECAR_CONTAINER,
)
from meshwright.sidecars.injection.restoration import restored
from meshwright.specs.values.quantities import amount

_NOTES: Final = frozenset(
    {
        *(ADDED_ANNOTATION, ORIGINALS_ANNOTATION, OWN_ANNOTATION, PROBES_ANNOTATION),
        *(REASON_ANNOTATION, RESOURCES_ANNOTATION, SCRAPED_ANNOTATION),
    }
)
"""Annotations about the Pod itself and for the removal of the sidecar.

They follow from the rest of the Pod, so they are not compared.
"""
_LIMIT_RANGER: Final = "kubernetes.io/limit-ranger"
"""Annotation in which the API server's LimitRanger lists the containers to which it added resources."""
_CONTAINERS: Final = ("initContainers", "containers")
_AMOUNTS: Final = frozenset({"limits", "requests"})
_MOST_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Difference:
    """A field of a Pod, with its current and its new value.

    None stands for a missing field, and an empty text for a value that is not shown.
    """

    field: str
    there: str | None
    wanted: str | None

    def __str__(self) -> str:
        match self.there, self.wanted:
            case None, wanted:
                return f"{self.field} is missing; a new Pod gets {wanted or 'the field'}"
            case there, None:
                return f"{self.field} is {there or 'set'}; a new Pod does not get the field"
            case "", "":
                return f"{self.field} has another value than in a new Pod"
            case there, wanted:
                return f"{self.field} is {there}; a new Pod gets {wanted}"


def differences(
    known: InjectionInputs, namespace: NamespaceObject, pod: Pod
) -> tuple[Difference, ...] | None:
    """Return the differences between a Pod with a sidecar and the same Pod injected again, in field order.

    Returns None if the Pod would get no sidecar now. Values that an API server fills in are not differences,
    nor are items that another program adds to all containers. Raises the errors of `injected`, and
    CannotPatchError if the sidecar cannot be removed.
    """
    plain = restored(pod)
    roots = (pod.get("metadata", {}).get("annotations") or {}).get(ROOTS_ANNOTATION, "")
    # An injection by hand may have written roots into the Pod. Without known roots, the Pod's own ones are
    # used.
    uuid = (own_uuid(pod) or TO_COME) if known.config.identity is Identity.SECRET else None
    known = replace(known, roots=known.roots or roots.encode(), uuid=uuid)
    anew = injected(known, namespace, plain).pod
    if anew is None:
        return None
    return tuple(_PodComparison(cast("Mapping[str, Any]", pod)).pods(cast("Mapping[str, Any]", anew)))


class _PodComparison:
    """Comparison of a Pod with its new form; both have the same author, and differ by injection only."""

    def __init__(self, pod: Mapping[str, Any]) -> None:
        self._pod = pod
        self._ranged = str((pod.get("metadata", {}).get("annotations") or {}).get(_LIMIT_RANGER, ""))

    def pods(self, anew: Mapping[str, Any]) -> Iterator[Difference]:
        """Yield the differences between the Pod and `anew` in annotations, labels and spec."""
        was, now = self._pod.get("metadata") or {}, anew.get("metadata") or {}
        for words in ("annotations", "labels"):
            there, wanted = (_without_notes(item.get(words) or {}) for item in (was, now))
            yield from self._mappings(f"metadata.{words}", there, wanted)
        yield from self._mappings("spec", self._pod["spec"], anew["spec"])

    def _mappings(
        self, path: str, there: Mapping[str, Any], wanted: Mapping[str, Any]
    ) -> Iterator[Difference]:
        there, wanted = _whole(there), _whole(wanted)
        for name in sorted(there.keys() | wanted.keys()):
            field = f"{path}[{name}]" if path.startswith("metadata.") else f"{path}.{name}"
            yield from self._values(field, name, there.get(name), wanted.get(name))

    def _values(self, path: str, name: str, there: object, wanted: object) -> Iterator[Difference]:
        if there == wanted or (
            (is_like_missing(there) or is_like_missing(wanted))
            and is_filled_in(name, there)
            and is_filled_in(name, wanted)
        ):
            return
        there, wanted = _alike(there, wanted), _alike(wanted, there)
        match there, wanted:
            case Mapping(), Mapping() if name in _AMOUNTS:
                yield from self._amounts(path, there, wanted)
            case Mapping(), Mapping():
                yield from self._mappings(path, there, wanted)
            case list(), list() if (key := key_of(name, there, wanted)) is not None:
                yield from self._named(path, name, key, there, wanted)
            case list(), list() if all(isinstance(item, Mapping) for item in (*there, *wanted)):
                yield from self._placed(path, there, wanted)
            case list(), list():
                yield _words_differ(path, there, wanted)
            case _:
                yield from self._single(path, there, wanted)

    def _single(self, path: str, there: object, wanted: object) -> Iterator[Difference]:
        if not is_like_missing(wanted) or not self._is_ranged(path):
            yield Difference(path, _shown(path, there), _shown(path, wanted))

    def _amounts(
        self, path: str, there: Mapping[str, Any], wanted: Mapping[str, Any]
    ) -> Iterator[Difference]:
        for name in sorted(there.keys() | wanted.keys()):
            was, now = there.get(name), wanted.get(name)
            if was is None or now is None or amount(was) != amount(now):
                yield from self._single(f"{path}.{name}", was, now)

    def _named(
        self, path: str, name: str, key: str, there: Sequence[Any], wanted: Sequence[Any]
    ) -> Iterator[Difference]:
        was, now = ({str(item[key]): item for item in those} for those in (there, wanted))
        for item in (*now, *(item for item in was if item not in now)):
            field = f"{path}[{item}]"
            if item not in was:
                yield Difference(field, None, "")
            elif item in now:
                yield from self._mappings(field, was[item], now[item])
            elif name in _CONTAINERS or not self._has_every_other(name, was[item]):
                yield Difference(field, "", None)
        both = [[item for item in those if item in was and item in now] for those in (was, now)]
        if name in _CONTAINERS and both[0] != both[1]:
            yield Difference(f"the order of {path}", ", ".join(both[0]), ", ".join(both[1]))

    def _placed(self, path: str, there: Sequence[Any], wanted: Sequence[Any]) -> Iterator[Difference]:
        for index in range(max(len(there), len(wanted))):
            was, now = (those[index] if index < len(those) else None for those in (there, wanted))
            yield from self._values(f"{path}[{index}]", "", was, now)

    def _has_every_other(self, name: str, item: object) -> bool:
        """Return whether all of the author's containers have an item.

        Another program then adds the item to every container, for example a mount of certificates.
        """
        others = [
            container for container in self._pod["spec"].get("containers") or () if _is_author_s(container)
        ]
        return bool(others) and all(item in (element.get(name) or ()) for element in others)

    def _is_ranged(self, path: str) -> bool:
        """Return whether a LimitRange may have set the resource value at this path."""
        container = path.partition("[")[2].partition("]")[0]
        return ".resources." in path and f"container {container}" in self._ranged


def _alike(value: object, other: object) -> object:
    """Return an empty list or mapping for an empty field if the other side has one."""
    if not is_like_missing(value):
        return value
    return [] if isinstance(other, list) else {} if isinstance(other, Mapping) else value


def _is_author_s(container: Mapping[str, Any]) -> bool:
    return container.get("name") not in (SIDECAR_CONTAINER, INIT_CONTAINER)


def _without_notes(words: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: word for name, word in words.items() if name not in _NOTES}


def _whole(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a mapping of resources with the requests that an API server derives from the limits."""
    limits, requests = value.get("limits"), value.get("requests")
    if not isinstance(limits, Mapping):
        return value
    return {**value, "requests": {**limits, **(requests if isinstance(requests, Mapping) else {})}}


def _words_differ(path: str, there: Sequence[Any], wanted: Sequence[Any]) -> Difference:
    """Return the difference of two lists of arguments, without their common start and end."""
    pairs = zip(there, wanted, strict=False)
    start = next((at for at, (was, now) in enumerate(pairs) if was != now), min(len(there), len(wanted)))
    was, now = list(there[start:]), list(wanted[start:])
    while was and now and was[-1] == now[-1]:
        was.pop()
        now.pop()
    text, would = (_short(shlex.join(map(str, item))) if item else None for item in (was, now))
    return Difference(f"{path}[{start}]", text, would)


def _shown(path: str, value: object) -> str | None:
    """Return a value for display, or an empty text for environment variables, which may be secrets."""
    if is_like_missing(value):
        return None
    if ".env[" in path or isinstance(value, Mapping | list):
        return ""
    return _short(value if isinstance(value, str) else json.dumps(value))


def _short(text: str) -> str:
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."
