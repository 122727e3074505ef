"""Tests of guesses at the enrolment port, and of clients that share the guesser's address."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from meshwright.enrolment.entry import origin_of
from meshwright.enrolment.limits import EnrolmentLimits, LimitExhausted
from meshwright.enrolment.proofs.contract import Evidence, ProofRefused
from meshwright.enrolment.proofs.join_token import KIND
from meshwright.enrolment.proofs.kubernetes import KubernetesProof, PodIdentity
from meshwright.enrolment.store.sqlite import SqliteTokens
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.workload import WorkloadKey
from tests.unit.enrolment.store.tokens import NOW, TOKEN, record
from tests.unit.enrolment.test_service import DATA, Signs, csr, enrolment

NAT = "203.0.113.7"
GUESS = f"{TOKEN.id}.{'A' * 43}".encode()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteTokens]:
    """Return a store with one token of 1000 uses, for many machines."""
    with SqliteTokens.open(tmp_path / "tokens.sqlite") as opened:
        opened.add(TOKEN, record(uuid=None, uses=1000))
        yield opened


@pytest.mark.parametrize("guess", [GUESS, b"no token", b"0" * 12 + b"." + b"A" * 43])
async def test_guesser_does_not_exclude_clients_behind_the_same_address(
    signs: Signs, store: SqliteTokens, guess: bytes
) -> None:
    """The guesses are limited, but a machine with a valid token still joins from the same address."""
    joining, request = enrolment(signs, store), csr()
    put_off = 0
    for _ in range(200):
        with pytest.raises((ProofRefused, LimitExhausted)) as refused:
            await joining.join(request, KIND, guess, NAT)
        put_off += refused.type is LimitExhausted
    assert put_off == 200 - int(EnrolmentLimits().by_address.at_once)
    assert (await joining.join(csr(), KIND, DATA, NAT)).signed.not_after > NOW


async def test_valid_joins_do_not_count_against_their_address(signs: Signs, store: SqliteTokens) -> None:
    """A whole rack behind one address can join at once, up to the limit of its token."""
    joining = enrolment(signs, store)
    for _ in range(int(EnrolmentLimits().by_token.at_once)):
        await joining.join(csr(), KIND, DATA, NAT)
    with pytest.raises(ProofRefused):
        await joining.join(csr(), KIND, b"no token", NAT)


def test_ipv6_address_is_counted_by_its_64_bit_network() -> None:
    """A client has all addresses of its /64 network; each IPv4 address counts for itself."""
    assert {origin_of(f"2001:db8:1:2::{number:x}") for number in range(1, 9)} == {"2001:db8:1:2::/64"}
    assert origin_of("::ffff:192.0.2.1") == origin_of("192.0.2.1") == "192.0.2.1"
    assert origin_of("unix:") == "unix:"


def pod_token(pod: str, uid: str) -> bytes:
    """Return an unsigned token with the claims of a Pod."""
    claims = {"kubernetes.io": {"namespace": "shop", "pod": {"name": pod, "uid": uid}}}
    parts = (base64.urlsafe_b64encode(json.dumps(item).encode()).rstrip(b"=") for item in ({}, claims))
    return b".".join((*parts, b"c2ln"))


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (pod_token("cart-1", "5a3c"), "5a3c"),
        (pod_token("cart-1", "another"), ""),
        (pod_token("none", "5a3c"), ""),
        (b"a.b.c", ""),
        (b"a.bm9uZQ.c", ""),
        (b"", ""),
        (b"\xff.\xff.\xff", ""),
    ],
)
async def test_pod_is_recognised_by_its_uid_without_a_call_to_the_api_server(token: bytes, name: str) -> None:
    """Guesses beyond their address's limit must not load the API server."""

    async def review(_: object) -> dict[str, object]:
        raise AssertionError("the API server was asked")

    identity = ServiceIdentity(Namespace("shop"), ServiceAccountName("cart"))

    def seen_as(key: WorkloadKey) -> PodIdentity | None:
        known = key == WorkloadKey(Namespace("shop"), "cart-1")
        return PodIdentity(identity, "5a3c", "node", None) if known else None

    proof = KubernetesProof(review, seen_as)
    assert await proof.recognise(Evidence(token, "", NAT)) == name
