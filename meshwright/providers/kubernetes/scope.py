"""The mesh's namespaces in a cluster: all, listed ones, or the ones with certain labels."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from meshwright.mesh.kinds import MESH_CONFIG, MESH_ROOT_CERTIFICATE
from meshwright.mesh.names import is_dns_label, is_dns_subdomain

IGNORED: Final = "openservicemesh.io/ignore"
"""Label of OSM for namespaces outside the mesh, whatever its value."""

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label of every namespace with its name."""

AT_HOME: Final = (MESH_CONFIG, MESH_ROOT_CERTIFICATE)
"""Kinds that are read in the control plane's own namespace, even if it is outside the mesh."""

Labels = Mapping[str, str]

_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SET: Final = re.compile(r"(?P<label>\S+)\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL: Final = re.compile(r"(?P<label>[^\s!=]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[^\s!=]*)")
_SELECTOR_RULE: Final = (
    "must be a label selector in the form of kubectl, for example "
    "openservicemesh.io/monitored-by=osm, tier in (shop, stock), team!=test, mesh or !old"
)


class ScopeError(ValueError):
    """Invalid namespaces or an invalid selector in the settings; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A selector's requirement for one label.

    With `values`, the label must have one of them; with `negated`, it must not, and a missing label fits too.
    Without `values`, the label must exist, or with `negated` must be missing.
    """

    label: str
    values: tuple[str, ...] | None = None
    negated: bool = False

    def fits(self, labels: Labels) -> bool:
        """Return whether a namespace's labels fulfil the requirement."""
        result = labels.get(self.label)
        is_so = result is not None and (self.values is None or result in self.values)
        return is_so is not self.negated

    def expression(self) -> Mapping[str, object]:
        """Return the requirement as an expression of a LabelSelector."""
        if self.values is None:
            return _expression(self.label, "DoesNotExist" if self.negated else "Exists")
        return _expression(self.label, "NotIn" if self.negated else "In", self.values)


Selector = tuple[Requirement, ...]
"""Requirements that must all be fulfilled; an empty selector accepts everything."""


def selector(text: str) -> Selector:
    """Parse a label selector in the syntax of kubectl; raises ScopeError."""
    return tuple(_requirement(part.strip()) for part in _parts(text)) if text.strip() else ()


def _parts(text: str) -> Iterable[str]:
    """Return the requirements in a label selector: split at commas outside of parentheses."""
    return re.split(r",(?![^()]*\))", text)


def _requirement(text: str) -> Requirement:
    if match := _SET.fullmatch(text):
        values = tuple(sorted({item.strip() for item in match["values"].split(",")}))
        result = Requirement(match["label"], values, match["word"] == "notin")
    elif match := _EQUAL.fullmatch(text):
        result = Requirement(match["label"], (match["value"],), match["sign"] == "!=")
    else:
        label = text.removeprefix("!").strip()
        result = Requirement(label, None, text.startswith("!"))
    if not _is_label(result.label) or not all(map(_is_value, result.values or ())):
        raise ScopeError(f"{text!r} {_SELECTOR_RULE}")
    return result


def _is_label(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _NAME.fullmatch(name) is not None and (is_dns_subdomain(prefix) if slash else True)


def _is_value(text: str) -> bool:
    return not text or _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a cluster that is in the mesh.

    Its namespaces are `namespaces` (empty: all) with labels that fit `selector`. `home` is the control
    plane's own namespace. A MeshConfig there is read even if the namespace is outside the mesh.
    MeshRootCertificates are accepted only from there, because write access to one decides which CA the whole
    mesh trusts.
    """

    namespaces: tuple[str, ...] = ()
    selector: Selector = ()
    home: str = ""

    @classmethod
    def from_settings(cls, namespaces: Iterable[str] = (), labels: str = "", home: str = "") -> Self:
        """Return the scope of namespaces from the settings; raises ScopeError."""
        names = tuple(sorted(set(namespaces)))
        for name in names:
            if not is_dns_label(name):
                raise ScopeError(
                    f"{name!r} is not a namespace: must be 1 to 63 characters a-z, 0-9 and inner hyphens"
                )
        return cls(names, selector(labels), home)

    def has(self, name: str, labels: Labels | None) -> bool:
        """Return whether a namespace is part of the mesh; `labels` is None while they are unknown."""
        if self.namespaces and name not in self.namespaces:
            return False
        if labels is None:
            return not self.selector
        return IGNORED not in labels and all(requirement.fits(labels) for requirement in self.selector)

    def expressions(self) -> tuple[Mapping[str, object], ...]:
        """Return the requirements for namespaces as a LabelSelector's `matchExpressions`."""
        named = [_expression(NAME_LABEL, "In", self.namespaces)] if self.namespaces else []
        return (
            *named,
            _expression(IGNORED, "DoesNotExist"),
            *(requirement.expression() for requirement in self.selector),
        )


def _expression(label: str, operator: str, values: Iterable[str] | None = None) -> Mapping[str, object]:
    return {"key": label, "operator": operator, **({} if values is None else {"values": list(values)})}
