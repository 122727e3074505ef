"""Certificate of the ingress gateway, as requested in a MeshConfig."""

from typing import Final

from meshwright.mesh.config import VALIDITY, GatewayCertificate
from meshwright.mesh.names import Namespace, SecretName, is_dns_subdomain
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.values.durations import life
from meshwright.specs.values.references import namespace_name, object_name

_NAMES: Final = "subjectAltNames"
_NAME_RULE: Final = "must be a DNS name in lower case, for example gateway.example.org"


def gateway_certificate(fields: Fields, secret: Fields, home: Namespace) -> GatewayCertificate:
    """Read `ingressGateway` and its `secret`.

    The Secret's namespace defaults to `home`. Only DNS names are allowed, because a URI could be the identity
    of a workload of the mesh.
    """
    fields.accept("secret", _NAMES, "validityDuration")
    secret.accept("name", "namespace")
    place = SecretName(namespace_name(secret, "namespace", home), object_name(secret, "name"))
    names = _dns_names(fields)
    return GatewayCertificate(place, names, life(fields, "validityDuration") or VALIDITY)


def _dns_names(fields: Fields) -> tuple[str, ...]:
    result = fields.texts(_NAMES, _NAME_RULE, is_dns_subdomain)
    for index, item in enumerate(result):
        if not is_dns_subdomain(item):
            fields.notes.refuse(Code.WRONG_VALUE, f"{fields.at(_NAMES)}[{index}]", _NAME_RULE, item)
    if not fields.raw(_NAMES):
        fields.wrong(_NAMES, f"must have at least one name of the gateway; each {_NAME_RULE}", Code.EMPTY)
    return tuple(sorted(set(result)))
