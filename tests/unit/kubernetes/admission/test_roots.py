"""Tests of the CA bundle of a webhook with several servers, each of which writes its own roots."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from certs.keys.bundle import TrustBundle
from meshwright.kubernetes.admission.configuration import Configuration, configuration, is_as
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.admission.roots import KEPT, MOST, RENEWED, SAID, trusting
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority

PLACE = Place.parse("https://10.0.0.5:9443")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the roots of several servers, each with its own CA."""
    made = (tmp_path_factory.mktemp("ca") for _ in range(MOST + 3))
    return [own_authority(path, TrustDomain("a.example"), NOW).trust_bundle() for path in made]


def wanted(ca: bytes) -> Configuration:
    """Return the configuration that a server with these roots wants."""
    return configuration(PLACE, ca, (), "home")


def bundles(result: Configuration) -> set[TrustBundle]:
    """Return the distinct CA bundles of the webhooks."""
    encoded = (webhook["clientConfig"]["caBundle"] for webhook in result["webhooks"])
    return {TrustBundle.from_pems([base64.b64decode(item)]) for item in encoded}


class Cluster:
    """The configuration that servers have written, and the number of writes."""

    def __init__(self) -> None:
        self.found: Any = None
        self.writes = 0

    def look(self, ca: bytes, now: datetime, *, settled: bool = True) -> None:
        """Let a server with these roots look, and write if its configuration differs."""
        if not is_as(self.found, dict(asked := trusting(wanted(ca), self.found, now, settled=settled))):
            self.found, self.writes = dict(asked), self.writes + 1

    def trusts(self, *cas: bytes) -> bool:
        """Return whether exactly these roots are trusted."""
        return bundles(self.found) == {TrustBundle.from_pems(cas)}


def test_servers_with_different_roots_are_all_trusted_without_repeated_writes(roots: list[bytes]) -> None:
    """Each server writes once, and then only renews its presence."""
    cluster = Cluster()
    for number in range(30):
        for root in roots[:3]:
            cluster.look(root, NOW + timedelta(seconds=number))
    assert cluster.writes == 3
    assert cluster.trusts(*roots[:3])
    for minutes in range(0, 600, 4):
        for root in roots[:3]:
            cluster.look(root, NOW + timedelta(minutes=minutes))
    assert cluster.trusts(*roots[:3])
    assert cluster.writes <= 3 + 3 * 600 * timedelta(minutes=1) / RENEWED


def test_single_server_writes_once(roots: list[bytes]) -> None:
    """A server alone needs no renewals."""
    cluster = Cluster()
    for hours in range(100):
        cluster.look(roots[0], NOW + timedelta(hours=hours))
    assert cluster.writes == 1


def test_roots_of_a_server_without_renewals_are_removed(roots: list[bytes]) -> None:
    """The roots of a server that is gone stay for a while before their removal.

    A server that has just started removes none, because it has not seen the others' renewals yet.
    """
    cluster = Cluster()
    for root in roots[:2]:
        cluster.look(root, NOW)
    cluster.look(roots[0], NOW + KEPT - timedelta(seconds=1))
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[0], NOW + KEPT, settled=False)
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[0], NOW + KEPT)
    assert cluster.trusts(roots[0])


def test_previous_roots_are_trusted_for_a_while_after_a_change(roots: list[bytes]) -> None:
    """Replicas change their roots one after the other."""
    cluster = Cluster()
    cluster.look(roots[0], NOW)
    cluster.look(roots[1], NOW + timedelta(minutes=1))
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[1], NOW + KEPT + timedelta(minutes=1))
    assert cluster.trusts(roots[1])


def test_roots_without_a_server_are_replaced(roots: list[bytes]) -> None:
    """Foreign roots and malformed values of `caBundle` are overwritten by a server with its own roots."""
    for spoil in (base64.b64encode(roots[1]).decode(), "b3RoZXI=", "%", ""):
        cluster = Cluster()
        cluster.look(roots[0], NOW)
        cluster.found["webhooks"][0]["clientConfig"]["caBundle"] = spoil
        cluster.look(roots[0], NOW)
        assert cluster.trusts(roots[0])


@pytest.mark.parametrize(
    "said", [None, "", "7", "{", '{"x": 7}', '{"x": "2026-01-01T00:00:00"}', "[]", 7, "[" * 200000]
)
def test_malformed_annotation_is_repaired(roots: list[bytes], said: object) -> None:
    """Every server writes its own entry again."""
    cluster = Cluster()
    for root in roots[:2]:
        cluster.look(root, NOW)
    cluster.found["metadata"]["annotations"] = {SAID: said}
    for item in (*roots[:2], *roots[:2]):
        cluster.look(item, NOW)
    assert cluster.trusts(*roots[:2])
    assert cluster.writes == 4


def test_number_and_age_of_trusted_roots_are_limited(roots: list[bytes]) -> None:
    """A server that makes new roots at each start cannot fill the bundle.

    An entry from the future does not stay.
    """
    cluster = Cluster()
    for number, root in enumerate(roots):
        cluster.look(root, NOW + timedelta(minutes=number))
    assert cluster.trusts(*roots[-MOST - 1 :])
    cluster = Cluster()
    cluster.look(roots[0], NOW + timedelta(days=365))
    cluster.look(roots[1], NOW)
    assert cluster.trusts(roots[1])
