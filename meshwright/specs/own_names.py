"""Check of annotations and labels under our own prefix: an unknown name is reported as a misspelling.

Names under other prefixes are ignored, unless the prefix is a misspelling of ours.
"""

import functools
from collections.abc import Mapping
from typing import Final

from meshwright.mesh.kinds import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    NAMESPACE,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    WORKLOAD,
    Kind,
)
from meshwright.mesh.problems.spelling import nearest
from meshwright.mesh.workload import DRIVER_ANNOTATION
from meshwright.specs.annotations import (
    CAPTURE,
    EGRESS_SERVICES,
    ESCAPED_SLASHES,
    GATEWAY_ANNOTATION,
    HOME,
    INJECT,
    IPV6,
    OVERLAYS,
    PERMISSIVE,
    PLACEMENT,
    REVISION,
    SERVICE_ANNOTATION,
    UUID_LABELS,
)
from meshwright.specs.codes import Code
from meshwright.specs.manifest import Manifest
from meshwright.specs.own.dns import DNS_ANNOTATION, SRV_ANNOTATION

PREFIX: Final = "meshwright.dev/"

_LIKE: Final = 0.85
"""Minimum similarity (0 to 1) of a domain to ours to count as misspelt."""

_REMEMBERED: Final = 256
"""Number of cached domains; a mesh has few."""

INJECTED: Final = frozenset(
    PREFIX + name
    for name in (
        *("mesh", "injected-driver", "probes", "original-probes", "original-scraping"),
        "original-resources",
        *("own-containers", "joining-roots", "injection", "injected", "interception"),
    )
)
"""Annotations from the injector; users do not write them."""
CHART: Final = frozenset({PREFIX + "settings"})
"""Annotations from the chart, on the control plane's own Pod; users do not write them either."""
OF_GATEWAYS: Final = frozenset({HOME})
"""Labels of the objects that the control plane makes for a gateway; users do not write them either."""

ANNOTATIONS: Final[Mapping[Kind, frozenset[str]]] = {
    NAMESPACE: frozenset({DRIVER_ANNOTATION, EGRESS_SERVICES, PERMISSIVE, INJECT, OVERLAYS}),
    POD: frozenset(
        {
            *(DRIVER_ANNOTATION, EGRESS_SERVICES, SERVICE_ANNOTATION, GATEWAY_ANNOTATION),
            *(CAPTURE, IPV6, INJECT, OVERLAYS, PLACEMENT),
        }
    )
    | INJECTED
    | CHART,
    SERVICE: frozenset({DNS_ANNOTATION, ESCAPED_SLASHES, SRV_ANNOTATION}),
    WORKLOAD: frozenset({DRIVER_ANNOTATION, EGRESS_SERVICES}),
}
LABELS: Final[Mapping[Kind, frozenset[str]]] = {
    NAMESPACE: frozenset({INJECT, REVISION}),
    POD: frozenset({*UUID_LABELS, INJECT, REVISION}),
    # Kubernetes copies the labels of a Service to its EndpointSlices.
    **dict.fromkeys((DEPLOYMENT, ENDPOINT_SLICE, SERVICE, SERVICE_ACCOUNT), OF_GATEWAYS),
}


def check_own_names(manifest: Manifest) -> None:
    """Warn of each label or annotation with our prefix that has no effect on this object."""
    for section in ("annotations", "labels"):
        if not manifest.metadata.has(section):
            continue
        fields = manifest.metadata.section(section)
        # Sorted, so that the order of warnings does not depend on the order in the manifest.
        for name in sorted(fields.names()):
            if is_without_effect(manifest.key.kind, section, name):
                path = f"{fields.path}[{name:.80}]"
                expected = functools.partial(_text_without_effect, manifest.key.kind, section, name)
                manifest.notes.warn(Code.UNKNOWN_OWN_NAME, path, expected, fields.raw(name))


def is_without_effect(kind: Kind, section: str, name: str) -> bool:
    """Return whether a label or annotation (`section`) is under our prefix and has no effect on this kind."""
    known = ANNOTATIONS if section == "annotations" else LABELS
    return is_own(name) and name not in known.get(kind, frozenset())


def unread(kind: Kind, section: str, name: str) -> str:
    """Return the problem of a label or annotation of ours without an effect; empty for any other."""
    return _text_without_effect(kind, section, name) if is_without_effect(kind, section, name) else ""


def is_own(name: str) -> bool:
    """Return whether an annotation or label is under our prefix, or under a misspelling of the prefix.

    For example, `meshwrigth.dev/inject` is under a misspelling.
    """
    domain, slash, _ = name.partition("/")
    return bool(slash) and _is_ours(domain)


@functools.lru_cache(_REMEMBERED)
def _is_ours(domain: str) -> bool:
    """Return whether the domain of a name is Meshwright's, or a misspelling."""
    return nearest(domain, {PREFIX.removesuffix("/")}, _LIKE) is not None


def _text_without_effect(kind: Kind, section: str, name: str) -> str:
    return f"is not read on this object; {_meant(kind, section, name)}"


def _meant(kind: Kind, section: str, name: str) -> str:
    """Return the likely intention: the same name elsewhere, the nearest name here, or all names here."""
    if not name.startswith(PREFIX):
        return f"did you mean {PREFIX}{name.partition('/')[2]:.60}?"
    if section == "labels" and name in ANNOTATIONS.get(kind, ()):
        return "write it as an annotation"
    if section == "annotations" and name in LABELS.get(kind, ()):
        return "write it as a label"
    kinds = sorted(item for item, names in ANNOTATIONS.items() if name in names - INJECTED - CHART)
    if kinds:
        return f"write it as an annotation of {' and '.join(map(str, kinds))}"
    here = sorted(
        (ANNOTATIONS if section == "annotations" else LABELS).get(kind, frozenset())
        - INJECTED
        - CHART
        - OF_GATEWAYS
    )
    bare = [item.removeprefix(PREFIX) for item in here]
    if near := nearest(name.removeprefix(PREFIX), bare):
        return f"did you mean {PREFIX}{near}?"
    if here:
        return f"the {section} that Meshwright reads on a {kind} are {', '.join(here)}"
    return f"Meshwright reads no {section} with this prefix on a {kind}"
