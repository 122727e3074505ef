"""CA certificates of ConfigMaps that a gateway or policy names, and the reasons against the others.

A ConfigMap of another namespace than that of the naming object needs a ReferenceGrant there, as a Secret
does. Without one the verdict is the same whether or not the ConfigMap exists.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from catalog.relations.gateways.grants import is_granted
from catalog.store.gateway import ca_bundles
from catalog.store.view import View
from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.gateway.gateways import ObjectReference
from meshwright.mesh.kinds import CONFIG_MAP, Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey


class CaReason(enum.Enum):
    """Reasons against a reference to CA certificates; each kind of object has its own words for them."""

    KIND = "the kind of the object is not supported"
    UNUSABLE = "the object is missing, or has no usable certificate"
    NOT_PERMITTED = "the reference lacks a ReferenceGrant"


@dataclass(frozen=True, slots=True)
class BrokenCa:
    """A reference without CA certificates, and why.

    `config_map` is the named ConfigMap if it does not exist, or lacks a ReferenceGrant.
    """

    reason: CaReason
    message: str
    # The message names the ConfigMap, so it is no difference of its own.
    config_map: PolicyKey | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CaCertificates:
    """The CA certificates of some references as one PEM text, and the references without any."""

    pem: str = field(default="", repr=False)
    broken: tuple[BrokenCa, ...] = ()


def ca_certificates(
    view: View, owner: Kind, namespace: Namespace, references: Iterable[ObjectReference]
) -> CaCertificates:
    """Return the CA certificates of the references of an object of a kind and namespace."""
    found = [_resolved(view, owner, namespace, reference) for reference in references]
    good = dict.fromkeys(item.pem for item in found if isinstance(item, CaBundle))
    return CaCertificates("".join(good), tuple(item for item in found if isinstance(item, BrokenCa)))


def _resolved(view: View, owner: Kind, own: Namespace, reference: ObjectReference) -> CaBundle | BrokenCa:
    namespace = own if reference.namespace is None else reference.namespace
    key = PolicyKey(namespace, reference.name)
    if reference.kind != CONFIG_MAP:
        return BrokenCa(CaReason.KIND, f"{reference.kind.full} {key} is not a ConfigMap")
    if not is_granted(view, owner, own, ObjectKey.from_name(CONFIG_MAP, key)):
        message = (
            f"{owner.name}s of {own} may refer to ConfigMap {key} only with a ReferenceGrant in {namespace}"
        )
        return BrokenCa(CaReason.NOT_PERMITTED, message, key)
    bundle = ca_bundles(view).get(key)
    if bundle is None:
        message = f"ConfigMap {key} does not exist, has no entry ca.crt, or cannot be read"
        return BrokenCa(CaReason.UNUSABLE, message, key)
    if bundle.fault:
        message = f"the CA certificates in ConfigMap {key} cannot be used: {bundle.fault}"
        return BrokenCa(CaReason.UNUSABLE, message)
    return bundle
