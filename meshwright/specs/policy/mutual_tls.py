"""MutualTLS, policy.meshwright.dev v1alpha1: clients that may use plain text during a migration."""

from typing import Final

from meshwright.mesh.kinds import SERVICE
from meshwright.mesh.policies.mutual_tls import MutualTLS, PlainText, TlsMode
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import Manifest
from meshwright.specs.policy.workloads import filled, subjects
from meshwright.specs.values.places import IP_RANGE, Places
from meshwright.specs.values.references import route_group

MODES: Final = tuple(tls_mode.value for tls_mode in TlsMode)
SOURCES: Final = (IP_RANGE, SERVICE.name)
STRICT_PLAIN: Final = (
    "is ignored with mode: Strict, which refuses plain text; remove plaintext, or set mode: Permissive"
)


def mutual_tls(manifest: Manifest) -> MutualTLS:
    """Read a MutualTLS; its ServiceAccounts and HTTPRouteGroups are those of its own namespace."""
    fields = manifest.spec()
    if not fields.has("mode"):
        fields.required_text("mode", "must be Strict or Permissive")
    mode = TlsMode(fields.choice("mode", MODES, TlsMode.STRICT.value))
    accounts, ports = subjects(fields)
    plaintext = _plaintext(fields.section("plaintext")) if fields.has("plaintext") else None
    fields.close()
    if plaintext is not None and mode is TlsMode.STRICT and not fields.notes.refused:
        fields.notes.warn(Code.FIELDS_NOT_USED, fields.at("plaintext"), STRICT_PLAIN)
    return MutualTLS(
        key=PolicyKey(manifest.namespace, manifest.key.name),
        mode=mode,
        accounts=accounts,
        ports=ports,
        plaintext=plaintext,
        created=manifest.metadata.text("creationTimestamp") or "",
    )


def _plaintext(fields: Fields) -> PlainText:
    filled(fields, "sources", "to allow all clients that call in plain text, leave the field out")
    filled(fields, "matches", "to allow all requests, leave the field out")
    places = Places()
    for section in fields.sections("sources"):
        _source(section, places)
    matches = tuple(sorted({_match(item) for item in fields.sections("matches")}))
    fields.close()
    return PlainText(tuple(sorted(places.services)), tuple(sorted(places.ranges)), matches)


def _source(fields: Fields, places: Places) -> None:
    """Read one source; an IPRange may have a namespace, which is ignored, as in an IngressBackend."""
    if not fields.has("kind"):
        fields.required_text("kind", f"must be {' or '.join(SOURCES)}")
    else:
        fields.choice("kind", SOURCES, IP_RANGE)
    if fields.raw("kind") == SERVICE.name:
        places.read_service(fields)
    elif fields.raw("kind") == IP_RANGE:
        places.read_range(fields)
    fields.accept("name", "namespace")
    fields.close()


def _match(fields: Fields) -> str:
    name = route_group(fields)
    fields.close()
    return name
