"""ReferenceGrant v1 and v1beta1."""

from typing import Final

from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.kinds import Kind
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.fields import Fields
from meshwright.specs.gateway.forms import GROUP, KIND, NAME, NAMESPACE, limited, optional, required
from meshwright.specs.manifest import Manifest

_MOST: Final = 16


def reference_grant(manifest: Manifest) -> ReferenceGrant:
    """Read a ReferenceGrant."""
    spec = manifest.spec()
    sources = tuple(_source(section) for section in limited(spec, "from", _MOST, least=1))
    targets = tuple(_target(section) for section in limited(spec, "to", _MOST, least=1))
    spec.close()
    key = PolicyKey(manifest.namespace, manifest.key.name)
    return ReferenceGrant(key, sources, targets)


def _source(fields: Fields) -> GrantedFrom:
    source = GrantedFrom(_kind(fields), Namespace(required(fields, "namespace", NAMESPACE)))
    fields.close()
    return source


def _target(fields: Fields) -> GrantedTo:
    target = GrantedTo(_kind(fields), optional(fields, "name", NAME))
    fields.close()
    return target


def _kind(fields: Fields) -> Kind:
    group = required(fields, "group", GROUP)
    return Kind(required(fields, "kind", KIND), group)
