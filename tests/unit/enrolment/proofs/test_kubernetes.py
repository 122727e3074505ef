"""What an API server answers of a token, read: what proves a Pod for us, and what does not."""

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


def test_a_pod_s_token_for_us_says_whose_it_is() -> None:
    """As a real API server answers."""
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
def test_what_proves_no_pod_is_refused(which: str) -> None:
    """Whatever it says besides."""
    status, reason = WRONG[which]
    with pytest.raises(ProofRefused) as refused:
        read_review({"status": status})
    assert refused.value.reason == reason


@pytest.mark.parametrize("token", [b"", b" \n", b"\xff", b"x" * 20_000])
def test_what_can_be_no_token_is_not_asked_about(token: bytes) -> None:
    """An API server need not read it."""
    with pytest.raises(ProofRefused, match="proof_unreadable"):
        question(token)
    assert question(b"a.b.c\n")["spec"] == {"token": "a.b.c", "audiences": ["meshwright"]}


SHOP = ServiceIdentity(Namespace("market"), ServiceAccountName("shop"))
NAME = ProxyName.parse("u1.shop.market")
SEEN = PodIdentity(SHOP, "2b2b", "worker-1", NAME)
OTHER = replace(SHOP, service_account=ServiceAccountName("other"))


@pytest.mark.parametrize("node", ["worker-1", ""])
def test_the_proxy_is_that_of_the_pod_which_both_know(node: str) -> None:
    """An API server that does not say where a Pod runs is believed all the same."""
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
def test_a_pod_that_the_mesh_sees_otherwise_is_refused(seen: PodIdentity, words: str) -> None:
    """What a Pod has for good cannot be another's in a moment."""
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
def test_a_pod_that_the_mesh_does_not_know_yet_comes_again(seen: PodIdentity | None) -> None:
    """Also where it knows the one before it, whose name it has; what becomes of a name is not told at once.

    And where the mesh is known by what was kept of it before Pods had UIDs there, and is not read yet.
    """
    with pytest.raises(ProofPending):
        holder(TokenIdentity(SHOP, "shop-0", "2b2b", "worker-1"), seen)
