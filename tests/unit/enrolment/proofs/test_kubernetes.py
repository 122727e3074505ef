"""Tests of the Kubernetes proof: the answers of an API server that prove a Pod."""

from dataclasses import replace
from typing import Any

import pytest

from meshwright.enrolment.proofs.contract import ProofPending, ProofRefused
from meshwright.enrolment.proofs.kubernetes import PodIdentity, TokenIdentity, holder, question, read_review
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName

GOOD: dict[str, Any] = {
    "authenticated": True,
    "audiences": ["meshwright"],
    "user": {
        "username": "system:serviceaccount:market:shop",
        "uid": "u",
        "extra": {
            "authentication.kubernetes.io/pod-name": ["shop-0"],
            "authentication.kubernetes.io/pod-uid": ["2b2b"],
        },
    },
}


def test_token_of_a_pod_for_meshwright_proves_its_identity() -> None:
    """The answer has the shape of a real API server's, with and without the node's name."""
    identity = ServiceIdentity(Namespace("market"), ServiceAccountName("shop"))
    assert read_review({"status": GOOD}) == TokenIdentity(identity, "shop-0", "2b2b")
    extra = {**GOOD["user"]["extra"], "authentication.kubernetes.io/node-name": ["worker-1"]}
    assert read_review({"status": _user(extra=extra)}) == TokenIdentity(
        identity, "shop-0", "2b2b", "worker-1"
    )


def _user(**changes: object) -> dict[str, Any]:
    return {**GOOD, "user": {**GOOD["user"], **changes}}


WRONG: dict[str, tuple[object, str]] = {
    "no answer": ({}, "not_authenticated"),
    "nonsense": ([1], "not_authenticated"),
    "not authenticated": ({**GOOD, "authenticated": False, "error": "invalid"}, "not_authenticated"),
    "said in words": ({**GOOD, "authenticated": "true"}, "not_authenticated"),
    "another audience": ({**GOOD, "audiences": ["others"]}, "not_authenticated"),
    "an API server that knows no audiences": ({**GOOD, "audiences": None}, "not_authenticated"),
    "a user": (_user(username="alice"), "not_authenticated"),
    "no account": (_user(username="system:serviceaccount:market"), "not_authenticated"),
    "no Pod": (_user(extra={}), "no_workload"),
    "a Pod without its UID": (
        _user(extra={"authentication.kubernetes.io/pod-name": ["shop-0"]}),
        "no_workload",
    ),
}


@pytest.mark.parametrize("which", WRONG)
def test_answer_that_proves_no_pod_is_refused_with_its_reason(which: str) -> None:
    """The reason is `not_authenticated`, or `no_workload` for an authenticated user without a Pod."""
    status, reason = WRONG[which]
    with pytest.raises(ProofRefused) as refused:
        read_review({"status": status})
    assert refused.value.reason == reason


@pytest.mark.parametrize("token", [b"", b" \n", b"\xff", b"x" * 20_000])
def test_unreadable_token_is_refused_without_a_question(token: bytes) -> None:
    """The API server need not read a text that cannot be a token."""
    with pytest.raises(ProofRefused, match="proof_unreadable"):
        question(token)
    assert question(b"a.b.c\n")["spec"] == {"token": "a.b.c", "audiences": ["meshwright"]}


SHOP = ServiceIdentity(Namespace("market"), ServiceAccountName("shop"))
NAME = ProxyName.parse("u1.shop.market")
SEEN = PodIdentity(SHOP, "2b2b", "worker-1", NAME)
OTHER = replace(SHOP, service_account=ServiceAccountName("other"))


@pytest.mark.parametrize("node", ["worker-1", ""])
def test_proxy_is_that_of_the_pod_known_to_the_mesh_and_the_api_server(node: str) -> None:
    """The node is compared only if both sides know it."""
    assert holder(TokenIdentity(SHOP, "shop-0", "2b2b", node), SEEN) == NAME
    assert holder(TokenIdentity(SHOP, "shop-0", "2b2b", node), replace(SEEN, node="")) == NAME


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            replace(SEEN, identity=OTHER),
            "has the ServiceAccount market/shop, but the mesh has market/other",
        ),
        (replace(SEEN, node="worker-2"), "the Pod runs on the node worker-1, but the mesh has worker-2"),
    ],
)
def test_pod_that_contradicts_the_mesh_is_refused(seen: PodIdentity, words: str) -> None:
    """A Pod never changes its ServiceAccount or its node, so a retry would not help."""
    with pytest.raises(ProofRefused, match=words) as refused:
        holder(TokenIdentity(SHOP, "shop-0", "2b2b", "worker-1"), seen)
    assert (refused.value.reason, refused.value.proof) == ("other_pod", "Pod market/shop-0 (2b2b)")


@pytest.mark.parametrize(
    "seen",
    [
        None,
        replace(SEEN, uid=""),
        replace(SEEN, proxy=None),
        replace(SEEN, uid="3c3c"),
        replace(SEEN, uid="3c3c", node="worker-2"),
        replace(SEEN, uid="3c3c", identity=OTHER, proxy=None),
    ],
)
def test_pod_that_the_mesh_does_not_know_yet_is_postponed(seen: PodIdentity | None) -> None:
    """The mesh may still have an earlier Pod of the same name, because a watch lags behind.

    It may also have a stored state without UIDs, if the sources are not read yet.
    """
    with pytest.raises(ProofPending):
        holder(TokenIdentity(SHOP, "shop-0", "2b2b", "worker-1"), seen)
