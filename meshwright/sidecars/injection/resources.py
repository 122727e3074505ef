"""What a pod as a whole asks for (`spec.resources`): it must have room for the sidecar as well.

An API server refuses a pod whose containers ask together for more than the pod does, or one of which has a
higher limit than the pod.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from decimal import Decimal, Inexact, localcontext
from typing import Any, Final

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Container, Pod, spec_of, stays
from meshwright.sidecars.injection import names
from meshwright.specs.values.quantities import amount, read_quantity, written

_SHARED: Final = frozenset({"cpu", "memory"})
"""With huge pages, all that a pod can ask for as a whole."""
_EXACT: Final = 100
"""Digits: the API's own quantities have at most 28."""

Amounts = Mapping[str, Mapping[str, str]]
"""Quantities by `requests` or `limits`, and what they are of."""


def widen(pod: Pod, own: Sequence[Container]) -> dict[str, str]:
    """Add to what a pod asks for, as a whole, what the sidecar does; return the annotation for the way back.

    `own` are the sidecar's containers, and `pod` is without them, and changed. One that says nothing as a
    whole stays so. Raises CannotPatchError for a quantity that is none.
    """
    there = spec_of(pod).get("resources") or {}
    if not any(there.get(field) for field in ("limits", "requests")):
        return {}
    with _exactly():
        wider = _wider(pod, there, own)
    if not wider:
        return {}
    was = {field: _only(there.get(field) or {}, each) for field, each in wider.items()}
    pod["spec"]["resources"] = {
        **there,
        **{field: {**(there.get(field) or {}), **each} for field, each in wider.items()},
    }
    return {names.RESOURCES_ANNOTATION: json.dumps({"is": wider, "was": was}, sort_keys=True)}


def read(text: str) -> tuple[Amounts, Amounts]:
    """Return what was written, and what had stood there; raise ValueError or KeyError for other text."""
    said = json.loads(text)
    found = said["is"], said["was"]
    if not all(isinstance(each, dict) for one in found for each in (one, *one.values())):
        raise ValueError("no resources")
    return found


def put_back(pod: Pod, noted: tuple[Amounts, Amounts]) -> None:
    """Let a pod ask for what it did before, where nobody has changed that since."""
    made, was = noted
    there: dict[str, Any] = dict(spec_of(pod).get("resources") or {})
    for field, each in made.items():
        before = was.get(field, {})
        same = {name for name, said in each.items() if amount(there.get(field, {}).get(name)) == amount(said)}
        kept = {
            name: before[name] if name in same else said
            for name, said in there.get(field, {}).items()
            if name not in same or name in before
        }
        there[field] = kept
        if not kept:
            del there[field]
    if made:
        pod["spec"]["resources"] = there


def narrow(pod: Pod, own: Sequence[Container]) -> None:
    """Take the share of a sidecar's containers from what a pod asks for, where nothing is noted of it.

    Raises CannotPatchError for a quantity that is none.
    """
    there: dict[str, Any] = dict(spec_of(pod).get("resources") or {})
    for field, share in (("requests", _asked), ("limits", _limit)):
        left: dict[str, str] = {}
        for name, said in (there.get(field) or {}).items():
            with _exactly():
                less = max((share(each, name) for each in own), default=Decimal(0))
                rest = _number(said, f"spec.resources.{field}.{name}") - less
                if not less or rest > 0:
                    left[name] = written(rest, said) if less else said
        if left or field in there:
            there[field] = left
    if there:
        pod["spec"]["resources"] = there


@contextmanager
def _exactly() -> Iterator[None]:
    """Have numbers added exactly; raise CannotPatchError where they cannot be."""
    with localcontext(prec=_EXACT) as exact:
        exact.traps[Inexact] = True
        try:
            yield
        except ArithmeticError as error:
            raise CannotPatchError("spec.resources: a quantity has too many digits to be added to") from error


def _wider(pod: Pod, there: Amounts, own: Sequence[Container]) -> dict[str, dict[str, str]]:
    """Return the amounts that become others.

    The sidecar's containers run in turn, or beside others that run in turn: there is room for the largest.
    """
    limits, requests = there.get("limits") or {}, there.get("requests") or {}
    totals = _totals(pod, {name for each in own for name in _named(each) if requests.get(name) is None})
    found: dict[str, dict[str, str]] = {}
    for name in sorted({*requests, *limits, *_shared(own)}):
        if more := max(_asked(each, name) for each in own):
            base, like = _base(totals, there, name)
            found.setdefault("requests", {})[name] = written(base + more, like)
        if name in limits and (more := max(_limit(each, name) for each in own)):
            number = _number(limits[name], f"spec.resources.limits.{name}")
            found.setdefault("limits", {})[name] = written(number + more, limits[name])
    return found


def _shared(own: Iterable[Container]) -> Iterator[str]:
    """Yield what the sidecar has that a pod can ask for as a whole: API servers fill that in."""
    for each in own:
        for field in ("limits", "requests"):
            yield from (
                name for name in _amounts(each, field) if name in _SHARED or name.startswith("hugepages-")
            )


def _base(totals: Mapping[str, Decimal], there: Amounts, name: str) -> tuple[Decimal, object]:
    """Return what a pod asks for without the sidecar, and what it is written like.

    Where it does not say, an API server takes what its containers ask for, or else its limit.
    """
    for field in ("requests", "limits"):
        if (said := (there.get(field) or {}).get(name)) is not None:
            total = totals.get(name, Decimal(0)) if field == "limits" else Decimal(0)
            return total or _number(said, f"spec.resources.{field}.{name}"), said
    return totals.get(name, Decimal(0)), "1" if name == "cpu" else "1Mi"


def _totals(pod: Pod, names: AbstractSet[str]) -> Mapping[str, Decimal]:
    """Return what a pod's containers ask for at most at a time, by name of what they ask for.

    A container is looked at once for all names that it has: the work is linear in the size of the Pod.
    """
    beside, most = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for each in spec_of(pod).get("initContainers") or ():
        for name in sorted(_named(each) & names):
            asked = _asked(each, name)
            most[name] = max(most[name], beside[name] + asked)
            beside[name] += asked if stays(each) else 0
    for each in spec_of(pod).get("containers") or ():
        for name in sorted(_named(each) & names):
            beside[name] += _asked(each, name)
    return {name: max(most[name], beside[name]) for name in {*most, *beside}}


def _named(container: Container) -> AbstractSet[str]:
    """Return the names of what a container asks for, or is limited in."""
    return {*_amounts(container, "requests"), *_amounts(container, "limits")}


def _asked(container: Container, name: str) -> Decimal:
    """Return what a container asks for: its limit, where it does not say."""
    return _of(container, name, "requests", "limits")


def _limit(container: Container, name: str) -> Decimal:
    """Return how much a container may have: what it asks for, where it has no limit."""
    return _of(container, name, "limits", "requests")


def _of(container: Container, name: str, *fields: str) -> Decimal:
    for field in fields:
        if (said := _amounts(container, field).get(name)) is not None:
            return _number(said, f"container {container.get('name')}: resources.{field}.{name}")
    return Decimal(0)


def _amounts(container: Container, field: str) -> Mapping[str, object]:
    """Return a container's amounts, whatever stands there: nobody has looked at it."""
    said = container.get("resources")
    found = said.get(field) if isinstance(said, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: object, where: str) -> Decimal:
    plain = int(value) if isinstance(value, int) else value  # a document's number may be written otherwise
    if (found := read_quantity(str(plain))) is not None:
        return found
    raise CannotPatchError(f"{where} is {value!r}: must be a quantity, such as 100m or 64Mi")


def _only(amounts: Mapping[str, str], those: Mapping[str, str]) -> dict[str, str]:
    return {name: amounts[name] for name in those if name in amounts}
