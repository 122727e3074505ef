"""The golden cases: manifests in `<case>/mesh.yaml`, or values, and the resources of each group of proxies.

`<case>/<namespace>.<workload>.<type>.yaml` has the resources of one type for the group whose first proxy is
that workload's. `<case>/problems.txt` has the problems of the objects. A secret is shown by its name and kind
only.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from google.protobuf import any_pb2, json_format
from google.protobuf.message import Message

from catalog.lint.problems import problems
from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.proxy import ProxyPolicy
from catalog.policy.values.terms import AccessLogPolicy
from catalog.relations.groups import groups
from catalog.store.inventory import by_sidecar
from catalog.store.view import MeshSettings, View
from certs.keys.material import PrivateKey, ServiceCertificate
from meshwright.providers.directory.manifests import Manifests
from meshwright.sidecars.envoy.features import diagnosis, tap
from meshwright.sidecars.envoy.security.secrets import service_certificate, trust_root
from meshwright.sidecars.envoy.telemetry import access_log
from meshwright.sidecars.layout import Side
from protos.envoy.config.cluster.v3 import cluster_pb2
from protos.envoy.config.endpoint.v3 import endpoint_pb2
from protos.envoy.config.listener.v3 import listener_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.transport_sockets.tls.v3 import secret_pb2
from tests.golden.policies import POLICIES
from tests.meshes.resources import resources
from xds.protocol.resources.resource import CLUSTER, ENDPOINT, LISTENER, ROUTE, SECRET, Resource

HERE: Final = Path(__file__).parent
CASES: Final = tuple(sorted(path.parent.name for path in HERE.glob("*/mesh.yaml")))
"""Those from manifests."""
EVERY: Final = (*CASES, *POLICIES)
"""These, and those from values (`tests.golden.policies`)."""
FILES: Final = {
    LISTENER: "listeners",
    ROUTE: "routes",
    CLUSTER: "clusters",
    ENDPOINT: "endpoints",
    SECRET: "secrets",
}
MESSAGES: Final[Mapping[str, type[Message]]] = {
    LISTENER: listener_pb2.Listener,
    ROUTE: route_pb2.RouteConfiguration,
    CLUSTER: cluster_pb2.Cluster,
    ENDPOINT: endpoint_pb2.ClusterLoadAssignment,
    SECRET: secret_pb2.Secret,
}


@dataclass(frozen=True)
class Group:
    """One group of proxies of a case: its file name, its policy, and its resources but the secrets."""

    name: str
    policy: ProxyPolicy
    resources: tuple[Resource, ...]


@cache
def view(case: str) -> View:
    """Read a case's manifests into a view."""
    text = (HERE / case / "mesh.yaml").read_text()
    manifests = Manifests().apply("mesh.yaml", text)
    assert manifests.problems() == (), "the manifests of a golden case are read without a complaint"
    return View.build(manifests.objects(), MeshSettings())


@cache
def case_groups(case: str) -> tuple[Group, ...]:
    """Return the groups of a case, sorted by name."""
    if case in POLICIES:
        return tuple(Group(name, item, resources(item)) for name, item in POLICIES[case].items())
    mesh = view(case)
    result = []
    for key, proxies in groups(mesh).items():
        first = min(by_sidecar(mesh)[proxy.sidecar][0] for proxy in proxies)
        policy = proxy_policy(mesh, key)
        result.append(Group(f"{first.namespace}.{first.name}", policy, resources(policy)))
    return tuple(sorted(result, key=lambda group: group.name))


def render(case: str) -> Mapping[str, str]:
    """Return the text of every golden file of a case."""
    files: dict[str, str] = {}
    for group in case_groups(case):
        for resource in (*group.resources, *masked_secrets(group.policy)):
            name = f"{group.name}.{FILES[resource.type_url]}.yaml"
            files[name] = files.get(name, "") + _document(resource)
    answer = sorted(problems(view(case)), key=lambda problem: problem.code) if case in CASES else ()
    if answer:
        files["problems.txt"] = "".join(f"{problem.severity} {problem}\n" for problem in answer)
    return files


def masked_secrets(policy: ProxyPolicy) -> tuple[Resource, ...]:
    """Return the secrets of a policy with placeholders for their content."""
    epoch = datetime(2000, 1, 1, tzinfo=UTC)
    nothing = ServiceCertificate(
        policy.identity, "0", epoch, epoch, (), b"[certificate chain]", PrivateKey(b"[private key]")
    )
    return service_certificate(nothing), trust_root(policy.trust_domain, b"[trust bundle]")


def decoded(resource: Resource) -> dict[str, Any]:
    """Decode a resource with the generated code: names as in the API's JSON, extensions in full."""
    wrapped = any_pb2.Any.FromString(resource.body)
    message = MESSAGES[wrapped.type_url]()
    message.ParseFromString(wrapped.value)
    result: dict[str, Any] = json.loads(json_format.MessageToJson(message))
    return result


def _document(resource: Resource) -> str:
    return "---\n" + yaml.safe_dump(_folded(decoded(resource)), sort_keys=True, width=100)


def _folded(value: Any) -> Any:
    """Replace access logs and diagnosis mappers by names, because they would be most of the text.

    Unit tests have them in full.
    """
    if isinstance(value, list):
        found = [_NAMED.get(str(item)) or _folded(item) for item in value]
        return f"[{', '.join(found)}]" if found and all(str(item) in _LOGS for item in value) else found
    if isinstance(value, dict):
        return {name: _folded(item) for name, item in value.items()}
    return value


def _text(message: Message) -> str:
    return str(json.loads(json_format.MessageToJson(message)))


_LOGS: Final = {
    _text(log): name
    for name, logs in (
        ("requests", access_log.requests(AccessLogPolicy())),
        ("judged requests", access_log.judged_requests(AccessLogPolicy())),
        ("connections", access_log.connections(AccessLogPolicy())),
        ("tap", (tap.log(grpc=False),)),
        ("tap of gRPC", (tap.log(grpc=True),)),
    )
    for log in logs
}
_NAMED: Final = _LOGS | {
    _text(mapper): f"[diagnosis by the {side.sidecar}, {kind}]"
    for side in Side
    for kind, mapper in zip(("failed connections", "others"), diagnosis.mappers(side), strict=True)
}
