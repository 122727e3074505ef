"""Test of enrolment by a ServiceAccount token, reviewed by a real API server: its Pod gives the name."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final

import grpc

from certs.keys.leaf import read_leaf
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain
from tests.feature.identity.grpc_machine import Answered, Machine, join
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.kubectl import Kubectl
from tests.kubernetes.tools.shop import FIRST, SECOND
from tests.tools.own_authority import own_authority
from tests.tools.program import Program, Server
from tools.real_parts.cluster import RunningCluster

SECONDS: Final = 60.0
REFUSED: Final = (
    grpc.StatusCode.PERMISSION_DENIED,
    "the request is refused: see the log of the control plane",
    "",
)


def _token(kubectl: Kubectl, account: str, pod: str, audience: str = "meshwright") -> str:
    """Return a token from the API server, as a Pod's volume has it."""
    uid = kubectl.get("pod", pod)["metadata"]["uid"] if pod else ""
    bound = (
        ("--bound-object-kind", "Pod", "--bound-object-name", pod, "--bound-object-uid", uid) if pod else ()
    )
    return kubectl("create", "token", account, "--audience", audience, *bound).strip()


def _joined(program: Program, server: Server) -> Any:
    """Return the server in the form that enrolment helpers expect."""
    at = HostPort.parse(server.bound["enrolment"])
    authority = own_authority(program.state, TrustDomain("cluster.local"), datetime.now(UTC))
    return SimpleNamespace(bound=SimpleNamespace(enrolment={"enrolment": at}), authority=authority)


async def _once(holds: Callable[[Answered], bool], at: Any, token: str) -> Answered:
    """Enrol until the answer is as expected, because a server learns of a Pod with a delay."""
    machine = Machine()
    async with asyncio.timeout(SECONDS):
        while not holds(answered := await join(at, machine, token, "kubernetes")):
            await asyncio.sleep(0.3)
    return answered


async def test_service_account_token_gives_only_the_certificate_of_its_own_pod(
    shared_cluster: RunningCluster, kubectl: Kubectl, program: Program, definitions: str
) -> None:
    """The token must have our audience and be bound to an existing Pod.

    The log has the reason of each refusal, and a revoked proxy is refused until its Pod is replaced.
    """
    namespace = kubectl.namespace
    kubectl.apply(
        *map(objects.account, ("shop", "other")),
        objects.pod("shop", "shop", uuid=f"shop-{namespace}"),
        objects.pod("plain", "other"),
    )
    kubectl.status(objects.runs("shop", FIRST), objects.runs("plain", SECOND))
    flags = ("--kubernetes", "--kubeconfig", str(shared_cluster.kubeconfig), "--namespaces", namespace)
    ports = ("--set", "enrolment_address=127.0.0.1:0", "--set", "enrolment_proofs=kubernetes")
    server = await asyncio.to_thread(program.serve, *flags, *ports)
    at = _joined(program, server)
    good = _token(kubectl, "shop", "shop")
    answered = await _once(lambda item: item.code is grpc.StatusCode.OK, at, good)
    name = read_leaf(answered.certificate.chain_pem).names.common_name
    assert name == f"shop-{namespace}.shop.{namespace}"
    (answer,) = server.said("proxy joined")
    assert answer["shown"].startswith(f"Pod {namespace}/shop (")

    refused = {
        "another audience": _token(kubectl, "shop", "shop", "https://kubernetes.default.svc"),
        "no Pod": _token(kubectl, "shop", ""),
        "no token": "a.b.c",
        "nothing": "",
    }
    for which, token in refused.items():
        result = await join(at, Machine(), token, "kubernetes")
        assert (result.code, result.words, result.reason) == REFUSED, which
    reasons = [item["reason"] for item in server.said("join refused")]
    assert reasons == ["not_authenticated", "no_workload", "not_authenticated", "proof_unreadable"]
    without = await join(at, Machine(), _token(kubectl, "other", "plain"), "kubernetes")
    assert without.code is grpc.StatusCode.UNAVAILABLE
    assert not server.said("proof cannot be verified now")
    assert server.said("join postponed")[-1]["reason"].endswith("does not have a known proxy in the mesh")
    assert not [item for item in server.log() if good in str(item)]

    leaf = read_leaf(answered.certificate.chain_pem)
    status, _, words = await asyncio.to_thread(program.revoke, leaf.serial)
    assert (status, words) == (0, "")
    again = await join(at, Machine(), _token(kubectl, "shop", "shop"), "kubernetes")
    assert (again.code, again.words, again.reason) == REFUSED
    assert server.said("join refused")[-1]["reason"] == "proxy_revoked"

    kubectl("delete", "pod", "shop", "--grace-period=0", "--force")
    kubectl.apply(objects.pod("shop", "shop", uuid=f"shop-{namespace}"))
    kubectl.status(objects.runs("shop", FIRST))
    fresh = _token(kubectl, "shop", "shop")
    answered = await _once(lambda item: item.code is grpc.StatusCode.OK, at, fresh)
    assert read_leaf(answered.certificate.chain_pem).names.common_name == name
    await _once(lambda item: item.code is grpc.StatusCode.PERMISSION_DENIED, at, good)
    server.stop()
