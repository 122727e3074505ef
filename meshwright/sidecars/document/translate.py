"""Translation of a ProxyPolicy into the document: JSON with sorted keys, equal bytes for equal policies."""

import hashlib
import json
from dataclasses import replace
from typing import Any, Final

from catalog.policy.values.destinations import ServiceDestination
from catalog.policy.values.inbound import EveryoneInTheMesh, InboundPort
from catalog.policy.values.outbound import OutboundService
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import WeightedBackend
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
    """Return the document of a policy, without secrets; `places` are the destinations with endpoints."""
    # A headless service may be both: called at one endpoint, and a backend that balances. Only the latter can
    # be part of the document.
    balanced = (place for place in places if not place.as_called)
    destinations = {(destination.service, destination.target_port): destination for destination in balanced}
    outbound = (_outbound(service, destinations, policy.trust_domain) for service in policy.outbound)
    content = {
        "identity": policy.identity.spiffe_id(policy.trust_domain),
        "trustDomain": policy.trust_domain,
        "tls": {"minimum": policy.tls.minimum.value, "maximum": policy.tls.maximum.value},
        "inbound": [_inbound(port, policy.trust_domain) for port in policy.inbound],
        "outbound": [item for item in outbound if item is not None],
    }
    return _resource(DOCUMENT, content)


def credentials(service_credentials: Credentials) -> Resource:
    """Return the resource with the workload's certificate, private key and roots, as PEM."""
    content = {
        "certificateChain": service_credentials.certificate.chain_pem.decode("ascii"),
        "privateKey": service_credentials.certificate.key.reveal().decode("ascii"),
        "trustBundle": service_credentials.trust_bundle.decode("ascii"),
    }
    return replace(_resource(CREDENTIALS, content), secret=True)


def _resource(type_url: TypeUrl, document: dict[str, Any]) -> Resource:
    body = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    return Resource(type_url, NAME, Version(hashlib.sha256(body).hexdigest()[:16]), body)


def _inbound(port: InboundPort, trust_domain: TrustDomain) -> dict[str, Any]:
    return {
        "address": None if port.listen is None else port.listen.address,
        "port": port.port,
        "application": {"address": port.application.address, "port": port.application.port},
        "protocol": port.protocol.value,
        "everyone": isinstance(port.access, EveryoneInTheMesh) and port.asked is None,
        "admitted": sorted(identity.spiffe_id(trust_domain) for identity in _admitted(port)),
    }


def _admitted(port: InboundPort) -> frozenset[ServiceIdentity]:
    """Return the identities with permission to connect, whatever they request.

    Rules with matches are skipped, because readers do not see requests. Rules for callers from outside of the
    mesh are skipped too, because readers check identities. A port with an external authorizer admits no
    caller: the authorizer may refuse any request, and readers do not ask the authorizer.
    """
    if port.asked is not None:
        return frozenset()
    rules = (access_rule for access_rule in port.access.rules if access_rule.matches is None)
    return frozenset(
        caller for rule in rules for caller in rule.callers if isinstance(caller, ServiceIdentity)
    )


def _outbound(
    service: OutboundService, destinations: dict[Any, ServiceDestination], trust_domain: TrustDomain
) -> dict[str, Any] | None:
    """Return a callable service; None if calls depend on routes or splits.

    A host outside of the mesh is left out too, because it has no certificate that a reader could verify.
    """
    # Timeouts, headers and other treatment of requests are left out, because readers do not see requests.
    chosen = any(entry.chosen_by is not None for entry in service.table)
    match tuple({entry.shares for entry in service.table}):
        case [[WeightedBackend() as backend]] if not chosen:
            pass
        case _:
            return None
    destination = destinations.get((backend.upstream, backend.target_port))
    if destination is None or backend.as_called:
        return None
    return {
        "service": str(service.upstream),
        "port": service.port,
        "protocol": service.protocol.value,
        "listen": [{"address": address.address, "port": address.port} for address in service.listen],
        "serverName": destination.server_name,
        "peers": sorted(identity.spiffe_id(trust_domain) for identity in destination.identities),
        "endpoints": [
            {"address": endpoint.address, "port": endpoint.port, "weight": endpoint.weight}
            for endpoint in destination.endpoints
        ],
    }
