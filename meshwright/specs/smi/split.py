"""TrafficSplit, split.smi-spec.io v1alpha1 to v1alpha4.

Weights of v1alpha1 are Kubernetes quantities ("500m", "1", 2), later ones whole numbers. `matches` exists
since v1alpha3.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from meshwright.mesh.kinds import HTTP_ROUTE_GROUP
from meshwright.mesh.policies.smi import Backend, PolicyKey, TrafficSplit
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates
from meshwright.specs.manifest import Manifest
from meshwright.specs.values.quantities import read_quantity
from meshwright.specs.values.references import object_name, own_service

MAX_WEIGHT = 2**32 - 1
"""Maximum sum of weights, because Envoy adds them in 32 bits."""

QUANTITY_TEXT: Final = (
    r"(\+?(?:[0-9]{1,12}(?:\.[0-9]{0,6})?|\.[0-9]{1,6}))([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?"
)
"""Pattern of a quantity of Kubernetes of at least 0: a number with an exponent or a unit."""

_QUANTITY: Final = re.compile(QUANTITY_TEXT)


def traffic_split(manifest: Manifest) -> TrafficSplit:
    """Read a TrafficSplit; apex and backends must be services of its namespace."""
    fields = manifest.spec()
    apex = own_service(fields, "service", manifest.namespace)
    sections = fields.sections("backends", required=True)
    backends = _backends(manifest, sections)
    if fields.has("backends") and not sections:
        fields.wrong("backends", "must have at least one backend", Code.EMPTY)
    matches = _matches(fields) if manifest.version in ("v1alpha3", "v1alpha4") else ()
    fields.close()
    if sum(backend.weight for backend in backends) > MAX_WEIGHT:
        fields.wrong("backends", f"the sum of the weights must be at most {MAX_WEIGHT}")
    return TrafficSplit(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        apex=apex,
        backends=backends,
        matches=matches,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _backends(manifest: Manifest, sections: Sequence[Fields]) -> tuple[Backend, ...]:
    names = [own_service(section, "service", manifest.namespace).name for section in sections]
    if manifest.version == "v1alpha1":
        weights = _scaled([_quantity(section) for section in sections])
    else:
        weights = [_weight(section) for section in sections]
    for section in sections:
        section.close()
    for index in duplicates(names):
        sections[index].wrong(
            "service", "must differ from the services of the other backends", Code.DUPLICATE
        )
    return tuple(Backend(name, weight) for name, weight in zip(names, weights, strict=True))


def _weight(fields: Fields) -> int:
    if not fields.has("weight"):
        fields.notes.refuse(
            Code.MISSING, fields.at("weight"), "is missing; must be a whole number of at least 0"
        )
    return fields.whole("weight", 0, MAX_WEIGHT, default=0) or 0


def _quantity(fields: Fields) -> Decimal:
    """Return the weight of a backend, a quantity such as 1, "1", "500m", "1Ki", "1e3" or 0.5."""
    value = fields.raw("weight")
    text = str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    number = read_quantity(text) if len(text) <= 32 and _QUANTITY.fullmatch(text) else None
    if number is None:
        code = Code.MISSING if value is None else Code.WRONG_VALUE
        fields.wrong("weight", 'must be a quantity of at least 0, for example 1 or "500m"', code)
        return Decimal(0)
    return number


def _scaled(quantities: Sequence[Decimal]) -> list[int]:
    """Return quantities as whole numbers of the same ratio, by the least sufficient power of 1000."""
    scale = 1
    while any(quantity * scale != int(quantity * scale) for quantity in quantities):
        scale *= 1000
    return [int(quantity * scale) for quantity in quantities]


def _matches(fields: Fields) -> tuple[str, ...]:
    """Return the names in `matches` of the HTTPRouteGroups, which are in the split's namespace."""
    names = set()
    for section in fields.sections("matches"):
        section.choice("apiGroup", ("specs.smi-spec.io",), "specs.smi-spec.io")
        if not section.has("kind"):
            section.required_text("kind", "must be HTTPRouteGroup")
        section.choice("kind", (HTTP_ROUTE_GROUP.name,), HTTP_ROUTE_GROUP.name)
        names.add(object_name(section, "name"))
        section.close()
    return tuple(sorted(names))
