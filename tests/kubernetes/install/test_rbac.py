"""Test that our roles are minimal: a server with them works, and uses each of their grants."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from meshwright.kube.api import Api
from meshwright.kube.builtin import MUTATING, VALIDATING
from meshwright.kube.connection.connection import find_connection as connection
from meshwright.kube.reflector.reflector import Reflector
from meshwright.kube.resource import Raw, Resource
from meshwright.kubernetes.admission.configuration import NAME
from meshwright.kubernetes.injection.configuration.place import CONFIG_MAP
from meshwright.kubernetes.status import event
from meshwright.kubernetes.status.parents.entries import MESH_CONTROLLER
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import (
    BACKEND_TLS_POLICY,
    CLIENT_TRAFFIC_POLICY,
    EXPERIMENTAL_GATEWAY_API,
    GATEWAY,
    GATEWAY_API,
    GATEWAY_CLASS,
    LISTENER_SET,
    REFERENCE_GRANT,
)
from tests.kubernetes.tools import faulty_proxy as spoiling
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.faulty_proxy import by_way_of
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.permissions import Grant, asked, granted
from tests.kubernetes.tools.recorded_stream import following
from tests.kubernetes.tools.shop import FIRST, everywhere
from tests.tools import libyaml
from tests.tools.program import Program
from tools.ports import free_port
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.keys import LOOPBACK

_HERE: Final = Path(__file__).parents[3] / "docs" / "kubernetes"
ROLES: Final = tuple(_HERE / f"{item}.yaml" for item in ("rbac", "webhook", "injection"))
HOME: Final = "meshwright-system"
EVENTS: Final = ("events.events.k8s.io",)


ROUTES: Final = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute")
OTHERS: Final = (
    objects.definition("specs.smi-spec.io", "udproutes", "UDPRoute", "v1alpha4"),
    objects.definition(EXPERIMENTAL_GATEWAY_API, "xmeshes", "XMesh", "v1alpha1", scope="Cluster"),
    *(
        objects.definition(GATEWAY_API, f"{kind.lower()}s", kind, "v1")
        for kind in (*ROUTES, GATEWAY.name, LISTENER_SET.name, REFERENCE_GRANT.name)
    ),
    objects.definition(GATEWAY_API, "backendtlspolicies", BACKEND_TLS_POLICY.name, "v1"),
    objects.definition(GATEWAY_API, "gatewayclasses", GATEWAY_CLASS.name, "v1", scope="Cluster"),
)
"""Definitions of other projects, in forms that accept any field."""
MESHES: Final = Resource(EXPERIMENTAL_GATEWAY_API, "v1alpha1", "xmeshes", "XMesh", namespaced=False)

GATEWAY_CLASS_OBJECT: Final = {
    "apiVersion": f"{GATEWAY_API}/v1",
    "kind": GATEWAY_CLASS.name,
    "metadata": {"name": "meshwright"},
    "spec": {"controllerName": CONTROLLER_NAME},
}
GATEWAY_OBJECT: Final = {
    "apiVersion": f"{GATEWAY_API}/v1",
    "kind": GATEWAY.name,
    "metadata": {"name": "public"},
    "spec": {
        "gatewayClassName": "meshwright",
        "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
    },
}
SET_OBJECT: Final = {
    "apiVersion": f"{GATEWAY_API}/v1",
    "kind": LISTENER_SET.name,
    "metadata": {"name": "more"},
    "spec": {
        "parentRef": {"name": "public"},
        "listeners": [{"name": "http", "port": 8080, "protocol": "HTTP"}],
    },
}
CLIENT_POLICY_OBJECT: Final = {
    "apiVersion": f"{CLIENT_TRAFFIC_POLICY.group}/v1alpha1",
    "kind": CLIENT_TRAFFIC_POLICY.name,
    "metadata": {"name": "public"},
    "spec": {
        "targetRefs": [{"group": GATEWAY_API, "kind": GATEWAY.name, "name": "public"}],
        "connections": {"max": 100},
    },
}

POLICY_OBJECTS: Final = (
    {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": BACKEND_TLS_POLICY.name,
        "metadata": {"name": "secure"},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": "shop"}],
            "validation": {"hostname": "shop.example", "wellKnownCACertificates": "System"},
        },
    },
    {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "secure"},
        "spec": {
            "parentRefs": [{"name": "public"}],
            "rules": [{"backendRefs": [{"name": "shop", "port": 80}]}],
        },
    },
)
"""A policy with a status needs a gateway that has a route to the target."""


def documents() -> list[dict[str, Any]]:
    """Return the manifests of the roles."""
    return [item for path in ROLES for item in libyaml.load_all(path.read_text("utf-8"))]


async def test_server_uses_every_grant_of_its_roles_and_is_refused_nothing(
    shared_cluster: RunningCluster,
    administrator: Kubectl,
    kubectl: Kubectl,
    accounts: Accounts,
    program: Program,
    buyer: ProxyName,
    tmp_path: Path,
) -> None:
    """The API server's audit log is the proof, while policy is read, refused, reported and reviewed."""
    files = [word for path in ROLES for word in ("-f", str(path))]
    administrator("apply", "--server-side", *files)
    administrator.apply(*OTHERS)
    at_home = replace(accounts, kubectl=replace(kubectl, namespace=HOME))
    account = at_home.found("meshwright")
    kubectl.apply(objects.routes("wrong", "("))
    # Their status has words; the root is another mesh's, and none is changed for it.
    other = objects.root("other", kubectl.namespace, trustDomain="example.org")
    kubectl.apply(objects.ingress("shop"), other)
    kubectl.apply(*(objects.gateway_route(kind, "shop") for kind in ROUTES))
    mesh = {
        "apiVersion": MESHES.api_version,
        "kind": MESHES.kind,
        "metadata": {"name": "mesh"},
        "spec": {"controllerName": MESH_CONTROLLER},
    }
    administrator.apply(mesh, GATEWAY_CLASS_OBJECT)
    kubectl.apply(GATEWAY_OBJECT, SET_OBJECT, CLIENT_POLICY_OBJECT, *POLICY_OBJECTS)
    log, grants = shared_cluster.place.audit, set(granted(documents()))

    def unused() -> list[Grant]:
        used = [item.grant for item in asked(log, account.user) if item.is_allowed]
        return sorted(grant for grant in grants if not any(map(grant.covers, used)))

    try:
        flags = (*everywhere(account.kubeconfig), *_judging())
        async with following(program, buyer, *flags):
            await asyncio.to_thread(kubectl.until, _is_reported, *EVENTS)
        # The next server renews the Event at once, because the problem stays.
        await asyncio.to_thread(_let_events_age, kubectl)
        async with following(program, buyer, *flags) as result:
            await result.until_at(FIRST)
            async with spoiling.spoiling(shared_cluster) as between:
                between.spoil = spoiling.without_streaming_lists  # otherwise no client would list
                way = by_way_of(account.kubeconfig, between.server, tmp_path / "by-way-of")
                asking = ("lint", "--kubernetes", "--kubeconfig", str(way))
                done = await asyncio.to_thread(program.run, *asking)
                assert done[2] == "", done
                await _followed(way)
            try:
                await result.until(lambda: not unused())
            except AssertionError:
                raise AssertionError(f"nobody uses: {', '.join(map(str, unused()))}") from None
            assert not result.failing()
        refused = sorted({item.grant for item in asked(log, account.user) if not item.is_allowed})
        assert not refused, ", ".join(map(str, refused))
    finally:
        for kind in (VALIDATING, MUTATING):
            administrator("delete", kind.plural, NAME, "--ignore-not-found")
        administrator("delete", *files, "--wait=false")
        administrator("delete", "crd", *(item["metadata"]["name"] for item in OTHERS))


async def _followed(kubeconfig: Path) -> None:
    """Watch both webhook configurations and the XMesh objects like the server."""
    async with Api(connection(kubeconfig, "")) as api, asyncio.timeout(60):
        clock = partial(datetime.now, UTC)
        for resource in (VALIDATING, MUTATING, MESHES):
            fields = "" if resource is MESHES else f"metadata.name={NAME}"
            follows: Reflector[Raw] = Reflector(api, resource, dict, clock, fields=fields)
            task = asyncio.create_task(follows.run(lambda _: None))
            try:
                await follows.listed.wait()
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


def _judging() -> tuple[str, ...]:
    at = f"{LOOPBACK}:{free_port(LOOPBACK)}"
    fields = {"webhook_address": at, "webhook_reached_at": f"https://{at}", "injection": "yes"}
    fields["injection_config_map"] = f"{HOME}/{CONFIG_MAP}"
    return tuple(word for item in fields.items() for word in ("--set", "=".join(item)))


def _is_reported(result: dict[str, Any]) -> bool:
    return any(item["regarding"]["name"] == "wrong" for item in result["items"])


def _let_events_age(kubectl: Kubectl) -> None:
    """Let the last observation of each problem be as long ago as a server renews it."""
    for item in kubectl.get(*EVENTS, "--selector=meshwright.dev/home")["items"]:
        written = event.read(item)
        assert written is not None, item
        patch = json.dumps(event.series(event.again(written, datetime.now(UTC) - event.RENEWED)))
        kubectl("patch", *EVENTS, item["metadata"]["name"], "--type=merge", "-p", patch)
