"""Pod-level resources (`spec.resources`), which must have room for the sidecar too.

An API server refuses a pod whose containers together request more than the pod does, or that has a container
with a higher limit than the pod.
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
"""Resources that a pod can request as a whole, besides huge pages."""
_EXACT: Final = 100
"""Digits of precision; quantities of the API have at most 28."""

Amounts = Mapping[str, Mapping[str, str]]
"""Quantities by field, then by resource name, for example `{"requests": {"cpu": "100m"}}`."""


def widen(pod: Pod, own: Sequence[Container]) -> dict[str, str]:
    """Add the sidecar's share to a pod's own resources (in place); return the annotation for restoration.

    `own` are the sidecar's containers, which `pod` must not contain. A pod without resources of its own stays
    unchanged. Raises CannotPatchError for an invalid quantity.
    """
    there = spec_of(pod).get("resources") or {}
    if not any(there.get(field) for field in ("limits", "requests")):
        return {}
    with _exactly():
        wider = _wider(pod, there, own)
    if not wider:
        return {}
    was = {field: _only(there.get(field) or {}, item) for field, item in wider.items()}
    pod["spec"]["resources"] = {
        **there,
        **{field: {**(there.get(field) or {}), **item} for field, item in wider.items()},
    }
    return {names.RESOURCES_ANNOTATION: json.dumps({"is": wider, "was": was}, sort_keys=True)}


def read(text: str) -> tuple[Amounts, Amounts]:
    """Parse the annotation with a pod's resource amounts: those that the patch wrote, and the earlier ones.

    Raises ValueError or KeyError for any other text.
    """
    answer = json.loads(text)
    result = answer["is"], answer["was"]
    if not all(isinstance(item, dict) for one in result for item in (one, *one.values())):
        raise ValueError("no resources")
    return result


def put_back(pod: Pod, noted: tuple[Amounts, Amounts]) -> None:
    """Restore a pod's earlier resource amounts (in place), except for amounts changed since the patch."""
    made, was = noted
    there: dict[str, Any] = dict(spec_of(pod).get("resources") or {})
    for field, item in made.items():
        before = was.get(field, {})
        # Compared as numbers, because API servers rewrite quantities, for example 1000m as 1.
        same = {name for name, text in item.items() if amount(there.get(field, {}).get(name)) == amount(text)}
        kept = {
            name: before[name] if name in same else answer
            for name, answer in there.get(field, {}).items()
            if name not in same or name in before
        }
        there[field] = kept
        if not kept:
            del there[field]
    if made:
        pod["spec"]["resources"] = there


def narrow(pod: Pod, own: Sequence[Container]) -> None:
    """Subtract the sidecar's share from a pod's resources (in place), if there is no record of it.

    Raises CannotPatchError for an invalid quantity.
    """
    there: dict[str, Any] = dict(spec_of(pod).get("resources") or {})
    for field, share in (("requests", _requested_amount), ("limits", _limit)):
        left: dict[str, str] = {}
        for name, answer in (there.get(field) or {}).items():
            with _exactly():
                less = max((share(item, name) for item in own), default=Decimal(0))
                rest = _number(answer, f"spec.resources.{field}.{name}") - less
                if not less or rest > 0:
                    left[name] = written(rest, answer) if less else answer
        if left or field in there:
            there[field] = left
    if there:
        pod["spec"]["resources"] = there


@contextmanager
def _exactly() -> Iterator[None]:
    """Compute with exact decimals; raise CannotPatchError if a result needs more than _EXACT digits."""
    with localcontext(prec=_EXACT) as exact:
        exact.traps[Inexact] = True
        try:
            yield
        except ArithmeticError as error:
            raise CannotPatchError("spec.resources: a quantity has too many digits to be added to") from error


def _wider(pod: Pod, there: Amounts, own: Sequence[Container]) -> dict[str, dict[str, str]]:
    """Return the amounts that change.

    The sidecar's containers run one after another, or beside others that do, so the share is the largest of
    them.
    """
    limits, requests = there.get("limits") or {}, there.get("requests") or {}
    totals = _totals(pod, {name for item in own for name in _named(item) if requests.get(name) is None})
    result: dict[str, dict[str, str]] = {}
    for name in sorted({*requests, *limits, *_shared(own)}):
        if more := max(_requested_amount(item, name) for item in own):
            base, like = _base(totals, there, name)
            result.setdefault("requests", {})[name] = written(base + more, like)
        if name in limits and (more := max(_limit(item, name) for item in own)):
            number = _number(limits[name], f"spec.resources.limits.{name}")
            result.setdefault("limits", {})[name] = written(number + more, limits[name])
    return result


def _shared(own: Iterable[Container]) -> Iterator[str]:
    """Yield the sidecar's resources that a pod can request as a whole; API servers fill these in."""
    for item in own:
        for field in ("limits", "requests"):
            yield from (
                name for name in _amounts(item, field) if name in _SHARED or name.startswith("hugepages-")
            )


def _base(totals: Mapping[str, Decimal], there: Amounts, name: str) -> tuple[Decimal, object]:
    """Return a pod's amount without the sidecar, and the quantity whose notation is followed.

    For a missing request an API server uses the sum of the containers' requests, or else the pod's limit.
    """
    for field in ("requests", "limits"):
        if (text := (there.get(field) or {}).get(name)) is not None:
            total = totals.get(name, Decimal(0)) if field == "limits" else Decimal(0)
            return total or _number(text, f"spec.resources.{field}.{name}"), text
    return totals.get(name, Decimal(0)), "1" if name == "cpu" else "1Mi"


def _totals(pod: Pod, names: AbstractSet[str]) -> Mapping[str, Decimal]:
    """Return the greatest amounts that a pod's containers request at any time, by resource name.

    Each container is visited once for all names, so the work is linear in the size of the Pod.
    """
    beside, most = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for init_container in spec_of(pod).get("initContainers") or ():
        for name in sorted(_named(init_container) & names):
            asked = _requested_amount(init_container, name)
            # Kubernetes' rule: init containers run one at a time, except for native sidecars, which stay.
            most[name] = max(most[name], beside[name] + asked)
            beside[name] += asked if stays(init_container) else 0
    for container in spec_of(pod).get("containers") or ():
        for name in sorted(_named(container) & names):
            beside[name] += _requested_amount(container, name)
    return {name: max(most[name], beside[name]) for name in {*most, *beside}}


def _named(container: Container) -> AbstractSet[str]:
    """Return the names of the resources, such as `cpu`, that a container requests or limits."""
    return {*_amounts(container, "requests"), *_amounts(container, "limits")}


def _requested_amount(container: Container, name: str) -> Decimal:
    """Return the amount that a container requests of a resource, or else the limit."""
    return _of(container, name, "requests", "limits")


def _limit(container: Container, name: str) -> Decimal:
    """Return a container's limit for a resource, or else the request."""
    return _of(container, name, "limits", "requests")


def _of(container: Container, name: str, *fields: str) -> Decimal:
    for field in fields:
        if (answer := _amounts(container, field).get(name)) is not None:
            return _number(answer, f"container {container.get('name')}: resources.{field}.{name}")
    return Decimal(0)


def _amounts(container: Container, field: str) -> Mapping[str, object]:
    """Return a container's `requests` or `limits`.

    Overlays are not validated, so any type must be expected.
    """
    answer = container.get("resources")
    result = answer.get(field) if isinstance(answer, Mapping) else None
    return result if isinstance(result, Mapping) else {}


def _number(value: object, where: str) -> Decimal:
    plain = int(value) if isinstance(value, int) else value  # a number from YAML may have another notation
    if (number := read_quantity(str(plain))) is not None:
        return number
    raise CannotPatchError(f"{where} is {value!r}: must be a quantity, for example 100m or 64Mi")


def _only(amounts: Mapping[str, str], those: Mapping[str, str]) -> dict[str, str]:
    return {name: amounts[name] for name in those if name in amounts}
