"""Translation of a ProxyPolicy into the document: JSON with sorted keys, equal bytes for equal policies."""

import hashlib
import json
from dataclasses import replace
from typing import Any, Final

from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.inbound import EveryoneInTheMesh, InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.contract.driver import Credentials
from xds.protocol.resources.resource import Resource, ResourceName, TypeUrl, Version

_TYPES: Final = "type.meshwright.dev/meshwright.sidecars.document.v1."
DOCUMENT: Final = TypeUrl(_TYPES + "Document")
CREDENTIALS: Final = TypeUrl(_TYPES + "Credentials")
NAME: Final = ResourceName("document")
"""The name of both resources, because a proxy has one document."""


def document(policy: ProxyPolicy, *places: ServiceDestination) -> Resource:
    """Return the document of a policy, without secrets; `places` are the policy's destinations."""
    # A headless service may be both: called at one endpoint, and a backend that balances. Only the latter can
    # be part of the document.
    balanced = (each for each in places if not each.as_called)
    destinations = {(each.service, each.target_port): each for each in balanced}
    outbound = (_outbound(each, destinations, policy.trust_domain) for each in policy.outbound)
    said = {
        "identity": policy.identity.spiffe_id(policy.trust_domain),
        "trustDomain": policy.trust_domain,
        "tls": {"minimum": policy.tls.minimum.value, "maximum": policy.tls.maximum.value},
        "inbound": [_inbound(each, policy.trust_domain) for each in policy.inbound],
        "outbound": [each for each in outbound if each is not None],
    }
    return _resource(DOCUMENT, said)


def credentials(held: Credentials) -> Resource:
    """Return the workload's certificate with the key, and the roots, as PEM."""
    said = {
        "certificateChain": held.certificate.chain_pem.decode("ascii"),
        "privateKey": held.certificate.key.reveal().decode("ascii"),
        "trustBundle": held.trust_bundle.decode("ascii"),
    }
    return replace(_resource(CREDENTIALS, said), secret=True)


def _resource(type_url: TypeUrl, said: dict[str, Any]) -> Resource:
    body = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    return Resource(type_url, NAME, Version(hashlib.sha256(body).hexdigest()[:16]), body)


def _inbound(port: InboundPort, trust_domain: TrustDomain) -> dict[str, Any]:
    return {
        "address": None if port.listen is None else port.listen.address,
        "port": port.port,
        "application": {"address": port.application.address, "port": port.application.port},
        "protocol": port.protocol.value,
        "everyone": isinstance(port.access, EveryoneInTheMesh) and port.asked is None,
        "admitted": sorted(each.spiffe_id(trust_domain) for each in _admitted(port)),
    }


def _admitted(port: InboundPort) -> frozenset[ServiceIdentity]:
    """Return the identities with permission to connect, whatever they request.

    Rules with matches are skipped, because readers do not see requests. Rules for callers from outside of the
    mesh are skipped too, because readers check identities. A port with an external authorizer admits no
    caller: the authorizer may refuse any request, and readers do not ask the authorizer.
    """
    if port.asked is not None:
        return frozenset()
    rules = (each for each in port.access.rules if each.matches is None)
    return frozenset(each for rule in rules for each in rule.callers if isinstance(each, ServiceIdentity))


def _outbound(
    service: OutboundService, destinations: dict[Any, ServiceDestination], trust_domain: TrustDomain
) -> dict[str, Any] | None:
    """Return a callable service; None if calls depend on routes or splits.

    A host outside of the mesh is left out too, because it has no certificate that a reader could verify.
    """
    match service.routes:
        case [only] if only.matches is None and only.split is None and len(only.backends) == 1:
            backend = only.backends[0]
        case _:
            return None
    found = destinations.get((backend.upstream, backend.target_port))
    if found is None or backend.as_called:
        return None
    return {
        "service": str(service.upstream),
        "port": service.port,
        "protocol": service.protocol.value,
        "listen": [{"address": each.address, "port": each.port} for each in service.listen],
        "serverName": found.server_name,
        "peers": sorted(each.spiffe_id(trust_domain) for each in found.identities),
        "endpoints": [
            {"address": each.address, "port": each.port, "weight": each.weight} for each in found.endpoints
        ],
    }
