"""Check of values of annotations and labels for the injector.

These values are not read in specs, and Kubernetes accepts any text. A value outside the allowed ones has no
effect, or another effect than intended, and is therefore reported.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Final

from meshwright.mesh.kinds import NAMESPACE, POD, Kind
from meshwright.mesh.names import is_dns_label
from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.annotations import INJECT, OVERLAYS, PLACEMENT, REVISION
from meshwright.specs.codes import Code
from meshwright.specs.manifest import Manifest

OSM: Final = "openservicemesh.io/"
"""Prefix of Open Service Mesh's annotations and labels."""
_OSM_INJECT: Final = f"{OSM}sidecar-injection"
_PORTS: Final = (f"{OSM}inbound-port-exclusion-list", f"{OSM}outbound-port-exclusion-list")
_RANGES: Final = (f"{OSM}outbound-ip-range-exclusion-list", f"{OSM}outbound-ip-range-inclusion-list")
_METRICS: Final = f"{OSM}metrics"
_MONITORED: Final = f"{OSM}monitored-by"
_IGNORE: Final = f"{OSM}ignore"
_NAME: Final = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?")
_MOST_PORT: Final = 65_535

Rule = Callable[[str], str]
"""Function that returns the rule broken by a value, or "" for a valid value."""


@dataclass(frozen=True, slots=True, order=True)
class WrongValue:
    """An invalid value of one of Meshwright's annotations or labels."""

    section: str
    name: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"metadata.{self.section}[{self.name}] is {self.value!r}: {self.expected}"


def _one_of(*words: str) -> Rule:
    listed = ", ".join(f'"{word}"' for word in words[:-1])
    must = f'must be {listed} or "{words[-1]}"'
    return lambda value: "" if value in words else f"{must}; the present value is ignored"


def _revision(value: str) -> str:
    right = is_dns_label(value)
    return (
        ""
        if right
        else ("must be the name of a revision of the control plane: a DNS label, for example canary")
    )


def _names(value: str) -> str:
    parts = [item.strip() for item in value.split(",")]
    return (
        ""
        if all(map(_NAME.fullmatch, parts))
        else ('must be a comma-separated list of names of overlays, for example "debug, large"')
    )


def _ports(value: str) -> str:
    parts = [item.strip() for item in value.split(",")]
    # int() alone would accept 8_080, +80, and digits of other scripts.
    good = all(part.isascii() and part.isdigit() and 0 < int(part) <= _MOST_PORT for part in parts)
    return "" if good else ('must be a comma-separated list of ports from 1 to 65535, for example "80, 8080"')


def _ranges(value: str) -> str:
    try:
        for item in value.split(","):
            IPv4Network(item.strip(), strict=False)
    except ValueError:
        return "must be a comma-separated list of IPv4 ranges, for example 10.0.0.0/8"
    return ""


_INJECTED: Final = _one_of("true", "false")
_OSM_INJECTED: Final = _one_of("enabled", "yes", "true", "disabled", "no", "false")
RULES: Final[Mapping[Kind, Mapping[str, Mapping[str, Rule]]]] = {
    NAMESPACE: {
        "labels": {INJECT: _INJECTED, REVISION: _revision},
        "annotations": {
            INJECT: _INJECTED,
            OVERLAYS: _names,
            _OSM_INJECT: _OSM_INJECTED,
            _METRICS: _one_of("enabled", "disabled"),
        },
    },
    POD: {
        "labels": {INJECT: _INJECTED, REVISION: _revision},
        "annotations": {
            INJECT: _INJECTED,
            OVERLAYS: _names,
            PLACEMENT: _one_of("native", "classic"),
            _OSM_INJECT: _OSM_INJECTED,
            **dict.fromkeys(_PORTS, _ports),
            **dict.fromkeys(_RANGES, _ranges),
        },
    },
}
"""Rules by kind, section of metadata, and name."""
_OSM_NAMES: Final[Mapping[Kind, Mapping[str, frozenset[str]]]] = {
    NAMESPACE: {
        "labels": frozenset({_MONITORED, _IGNORE}),
        "annotations": frozenset({_OSM_INJECT, _METRICS}),
    },
    POD: {"labels": frozenset(), "annotations": frozenset({_OSM_INJECT, *_PORTS, *_RANGES})},
}
"""Names under Open Service Mesh's prefix with an effect here."""


def wrong_values(kind: Kind, section: str, pairs: Iterable[tuple[str, str]]) -> Iterator[WrongValue]:
    """Yield the invalid values among labels or annotations (`section`) of an object."""
    rules = RULES.get(kind, {}).get(section, {})
    for name, value in pairs:
        if (rule := rules.get(name)) is not None and (expected := rule(value)):
            yield WrongValue(section, name, value, expected)


def unread_name(kind: Kind, section: str, name: str) -> str:
    """Return the problem of a name of Open Service Mesh without an effect; empty for any other."""
    sections = _OSM_NAMES.get(kind)
    if sections is None or not name.startswith(OSM) or name in sections[section]:
        return ""
    other = "labels" if section == "annotations" else "annotations"
    if name in sections[other]:
        return f"is read only in {other} and is ignored here; move it to {other}"
    near = nearest(name.removeprefix(OSM), sorted(item.removeprefix(OSM) for item in sections[section]))
    return f"is not read here{f'; did you mean {OSM}{near}?' if near else ''}"


def check_own_values(manifest: Manifest) -> None:
    """Warn of each invalid value, and of each name of Open Service Mesh without an effect."""
    kind = manifest.key.kind
    for section in ("annotations", "labels"):
        if kind not in RULES or not manifest.metadata.has(section):
            continue
        fields = manifest.metadata.section(section)
        judged = RULES[kind].get(section, {})
        names = [item for item in sorted(fields.names()) if item in judged or item.startswith(OSM)]
        pairs = [(name, value) for name in names if isinstance(value := fields.raw(name), str)]
        for wrong_value in wrong_values(kind, section, pairs):
            manifest.notes.warn(
                Code.UNKNOWN_OWN_VALUE,
                f"{fields.path}[{wrong_value.name}]",
                wrong_value.expected,
                wrong_value.value,
            )
        for name, value in pairs:
            if why := unread_name(kind, section, name):
                manifest.notes.warn(Code.UNKNOWN_OWN_NAME, f"{fields.path}[{name:.80}]", why, value)
