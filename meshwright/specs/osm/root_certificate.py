"""OSM's MeshRootCertificate, config.openservicemesh.io v1alpha2: a root of the mesh.

`intent` was the name of `role` during the development of OSM 1.2. An object without either is active, because
every root was active in OSM's releases.
"""

from collections.abc import Mapping
from typing import Final

from meshwright.mesh.names import SecretName, TrustDomain, is_dns_subdomain
from meshwright.mesh.policies.roots import MeshRootCertificate, Role
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.values.references import namespace_name, object_name

ROLES: Final = tuple(Role)

_WAY: Final = ("tresor", "ca", "secretRef")

_ELSEWHERE: Final[Mapping[str, str]] = {
    "vault": "to have Vault sign, use the settings issuer: vault, vault_address and vault_role of the server",
    "certManager": "to have cert-manager sign, use the settings issuer: cert-manager and "
    "cert_manager_issuer of the server",
}
"""Providers that only settings can select, because settings have the login and the roots to trust."""


def mesh_root_certificate(manifest: Manifest) -> MeshRootCertificate:
    """Read a MeshRootCertificate; its Secret's namespace defaults to the object's."""
    fields = manifest.spec()
    provider = fields.section("provider", required=True)
    secret = _secret(manifest, provider) if fields.has("provider") else SecretName(manifest.namespace, "")
    domain, role = _trust_domain(fields), _role(fields)
    if fields.flag("spiffeEnabled", default=True) is False:
        expected = "is ignored, because certificates always have SPIFFE IDs"
        fields.notes.inform(Code.FIELDS_NOT_USED, fields.at("spiffeEnabled"), expected)
    fields.close()
    return MeshRootCertificate(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        secret=secret,
        trust_domain=domain,
        role=role,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _secret(manifest: Manifest, provider: Fields) -> SecretName:
    """Return the Secret with the provider's CA; for another provider, report the setting to use instead."""
    elsewhere = [name for name in _ELSEWHERE if provider.has(name)]
    provider.accept(*_ELSEWHERE)
    for name in elsewhere:  # without the value, which may be a token
        expected = f"only the provider tresor, the built-in CA, is supported here; {_ELSEWHERE[name]}"
        provider.notes.refuse(Code.WRONG_VALUE, provider.at(name), expected)
    way = [provider]
    for inner in _WAY:
        # The path provider.tresor.ca.secretRef is incomplete; the missing part is reported below.
        if not way[-1].has(inner):
            break
        way.append(way[-1].section(inner))
    else:
        name = object_name(way[-1], "name")
        namespace = namespace_name(way[-1], "namespace", manifest.namespace)
        for fields in way:
            fields.close()
        return SecretName(namespace, name)
    if not elsewhere:
        way[-1].section(_WAY[len(way) - 1], required=True)
    return SecretName(manifest.namespace, "")


def _trust_domain(fields: Fields) -> TrustDomain:
    text = fields.text("trustDomain") or ""
    if text and not is_dns_subdomain(text):
        fields.wrong("trustDomain", "must be a trust domain, for example cluster.local")
    return TrustDomain(text)


def _role(fields: Fields) -> Role:
    """Return the role of a root certificate from either of its two field names, which must agree."""
    role = Role(fields.choice("role", ROLES, Role.ACTIVE))
    intent = Role(fields.choice("intent", ROLES, role))
    if fields.has("role") and intent is not role:
        fields.wrong(
            "intent", f"must be {role}, the value of role: intent is the older name of the same field"
        )
    return intent
