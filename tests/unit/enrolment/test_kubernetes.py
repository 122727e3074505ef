"""What an API server answers of a token, read: what proves a Pod for us, and what does not."""

from typing import Any

import pytest

from enrolment.proofs.contract import ProofRefused
from enrolment.proofs.kubernetes import Shown, question, read_review
from mesh.identity import ServiceIdentity
from mesh.names import Namespace, ServiceAccountName

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
    assert read_review({"status": GOOD}) == Shown(identity, "shop-0", "2b2b")


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
