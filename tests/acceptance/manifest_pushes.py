"""Resources of random manifests, pushed to a real Envoy: its rejections, and counts of the tries."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf import any_pb2

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.inbound import EveryoneInTheMesh, OnlyRules
from catalog.policy.values.interception import InterceptionKind
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.route_actions import Answer
from catalog.relations.groups import ProxyGroup, groups
from catalog.relations.identities import service_identities
from catalog.store.view import MeshSettings, View
from certs.proxy import issue_proxy
from meshwright.mesh.gateway.filters import Redirect
from meshwright.mesh.policies.client_traffic import DEFAULTS
from meshwright.providers.directory.manifests import Manifests
from meshwright.sidecars.envoy.security.secrets import service_certificate, trust_root
from meshwright.sidecars.envoy.validation import faults
from tests.acceptance.manifests import Document, mesh
from tests.acceptance.values import Dice
from tests.golden.resource_receiver import push
from tests.golden.running_mesh import TRUST_DOMAIN, LiveMesh
from tests.meshes.resources import resources
from xds.protocol.resources.resource import Resource
from xds.protocol.resources.snapshot import Snapshot

_PAIR: Final = re.compile(r"\\ud([89ab][0-9a-f]{2})\\ud([c-f][0-9a-f]{2})")


@dataclass
class Counts:
    """Counts of cases, documents by kind, accepted ones, resources by type, and faults."""

    cases: int = 0
    pushes: int = 0
    written: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    resources: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    expressions: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def share(self, kind: str) -> float:
        """Return the share of the documents of a kind that were accepted."""
        return self.accepted[kind] / self.written[kind]


def settings() -> MeshSettings:
    """Return the settings of a mesh whose certificates the Envoy has."""
    return MeshSettings(trust_domain=TRUST_DOMAIN)


def written(documents: list[Document], *, as_json: bool) -> dict[str, str]:
    """Write documents as a file of manifests. JSON's text may contain characters that YAML's may not."""
    if as_json:
        return {"mesh.json": json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})}
    text = "\n---\n".join(json.dumps(document) for document in documents)
    return {"mesh.yaml": _PAIR.sub(_as_yaml, text)}


def _as_yaml(pair: re.Match[str]) -> str:
    """Write an escaped surrogate pair in YAML's form, as one escape."""
    return rf"\U{ord(json.loads(f'{chr(34)}{pair[0]}{chr(34)}')):08x}"


def view_of(documents: list[Document], counts: Counts, *, as_json: bool = False) -> View:
    """Read documents into a view like those of a directory; refused ones are left out."""
    read = Manifests().apply_all(written(documents, as_json=as_json))
    counts.written.update(document["kind"] for document in documents)
    counts.accepted.update(key.kind.name for key in read.objects())
    return View.build(read.objects(), settings())


async def try_case(mesh_: LiveMesh, seed: int, counts: Counts) -> None:
    """Make the mesh of a seed and push the resources of each of its proxies."""
    counts.cases += 1
    await try_view(mesh_, view_of(mesh(Dice(seed)), counts, as_json=seed % 2 == 1), f"seed {seed}", counts)


async def try_view(mesh_: LiveMesh, view: View, named: str, counts: Counts) -> None:
    """Push the resources of each proxy of a view, with the certificates that it would get."""
    for key, (proxy, *_) in groups(view).items():
        policy = proxy_policy(view, key)
        issue_proxy(mesh_.authority, mesh_.ledger, proxy, timedelta(hours=1), datetime.now(UTC))
        made = resources(policy)
        counts.pushes += 1
        counts.resources.update(resource.type_url.rpartition(".")[2] for resource in made)
        _look(policy, counts)
        counts.faults += [f"{named}, {proxy}: {fault}" for one in made for fault in _own_faults(one)]
        snapshot = Snapshot.of((*made, *certified(mesh_, view, key)))
        for type_url, words in (await push(mesh_, snapshot)).items():
            counts.faults.append(f"{named}, {proxy}: {type_url.rpartition('.')[2]}: {words}")


def certified(mesh_: LiveMesh, view: View, key: ProxyGroup) -> tuple[Resource, ...]:
    """Return the secrets of a group of proxies with real certificates, because Envoy parses them."""
    names = service_identities(view)[key.identity]
    certificate = mesh_.manager.ensure(key.identity, names, datetime.now(UTC))
    return service_certificate(certificate), trust_root(TRUST_DOMAIN, mesh_.manager.trust_bundle())


def _own_faults(resource: Resource) -> list[str]:
    return [f"{resource.name}: {fault}" for fault in faults(any_pb2.Any.FromString(resource.body))]


def _look(policy: ProxyPolicy, counts: Counts) -> None:
    """Count the features of Envoy that a proxy's policy uses."""
    rules = [
        rule for port in policy.inbound if isinstance(port.access, OnlyRules) for rule in port.access.rules
    ]
    entries = [entry for service in policy.outbound for entry in service.table]
    chains = [chain for port in policy.edge for chain in port.chains]
    matches = [match for access_rule in rules for match in access_rule.matches or ()]
    matches += [match for entry in entries for match in entry.named_matches]
    counts.expressions.update(match.path_regex for match in matches if match.path_regex is not None)
    counts.expressions.update(header.regex for match in matches for header in match.headers)
    result = {
        "rules on HTTP": any(rule.matches is not None for rule in rules),
        "rules on TCP": any(rule.matches is None for rule in rules),
        "a header": any(match.headers for match in matches),
        "shares": any(len(entry.shares) > 1 for entry in entries),
        "a split for some requests": any(entry.matches and entry.chosen_by for entry in entries),
        "routes of the Gateway API": any(entry.route is not None for entry in entries),
        "redirects": any(isinstance(entry.action, Redirect) for entry in entries),
        "answers": any(isinstance(entry.action, Answer) for entry in entries),
        "endpoints": any(
            service_destination.endpoints for service_destination in policy.service_destinations
        ),
        "IPv6 endpoints": any(
            ":" in one.address
            for service_destination in policy.service_destinations
            for one in service_destination.endpoints
        ),
        "localities": any(
            one.locality
            for service_destination in policy.service_destinations
            for one in service_destination.endpoints
        ),
        "as called": any(
            service_destination.as_called for service_destination in policy.service_destinations
        ),
        "explicit": policy.interception is InterceptionKind.EXPLICIT,
        "egress": policy.passthrough,
        "TLS parameters": bool(policy.tls.cipher_suites or policy.tls.ecdh_curves),
        "ports of gateways": bool(policy.edge),
        "hosts of gateways": any(host.table for chain in chains for host in chain.hosts or ()),
        "connections of gateways": any(chain.entry is not None for chain in chains),
        "server names of gateways": any(chain.tls is not None for chain in chains),
        "settings of gateways' clients": any(chain.settings != DEFAULTS for chain in chains),
        "permissive": any(isinstance(port.access, EveryoneInTheMesh) for port in policy.inbound),
        "long names": any(
            len(service_destination.service.name) == 63 for service_destination in policy.service_destinations
        ),
    }
    counts.held.update(name for name, holds in result.items() if holds)
