"""Whom API servers trust where several servers stand behind one webhook: by what each of them writes."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from certs.issuers.authority import CertificateAuthority
from certs.keys.bundle import TrustBundle
from meshwright.kubernetes.admission.configuration import Configuration, configuration, is_as
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.admission.roots import KEPT, MOST, RENEWED, SAID, trusting
from meshwright.mesh.names import TrustDomain

PLACE = Place.parse("https://10.0.0.5:9443")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return the roots of so many servers, each of which has a CA of its own."""
    made = (tmp_path_factory.mktemp("ca") for _ in range(MOST + 3))
    return [CertificateAuthority.open(path, TrustDomain("a.example"), NOW).trust_bundle() for path in made]


def wanted(ca: bytes) -> Configuration:
    """Return what a server with these roots wants."""
    return configuration(PLACE, ca, (), "home")


def bundles(found: Configuration) -> set[TrustBundle]:
    """Return whom an API server trusts, by webhook."""
    encoded = (each["clientConfig"]["caBundle"] for each in found["webhooks"])
    return {TrustBundle.of([base64.b64decode(each)]) for each in encoded}


class Cluster:
    """What servers have written so far, and how often."""

    def __init__(self) -> None:
        self.found: Any = None
        self.writes = 0

    def look(self, ca: bytes, now: datetime, *, settled: bool = True) -> None:
        """Let a server with these roots look, and write what it wants otherwise."""
        if not is_as(self.found, dict(asked := trusting(wanted(ca), self.found, now, settled=settled))):
            self.found, self.writes = dict(asked), self.writes + 1

    def trusts(self, *cas: bytes) -> bool:
        """Say whether these roots are trusted, and no others."""
        return bundles(self.found) == {TrustBundle.of(cas)}


def test_servers_with_different_roots_are_all_trusted_and_have_no_quarrel(roots: list[bytes]) -> None:
    """Each writes once, and then only that it is still there."""
    cluster = Cluster()
    for number in range(30):
        for each in roots[:3]:
            cluster.look(each, NOW + timedelta(seconds=number))
    assert cluster.writes == 3
    assert cluster.trusts(*roots[:3])
    for minutes in range(0, 600, 4):
        for each in roots[:3]:
            cluster.look(each, NOW + timedelta(minutes=minutes))
    assert cluster.trusts(*roots[:3])
    assert cluster.writes <= 3 + 3 * 600 * timedelta(minutes=1) / RENEWED


def test_one_alone_writes_once(roots: list[bytes]) -> None:
    """It need not say for ever that it is there."""
    cluster = Cluster()
    for hours in range(100):
        cluster.look(roots[0], NOW + timedelta(hours=hours))
    assert cluster.writes == 1


def test_the_roots_of_a_server_that_is_gone_go(roots: list[bytes]) -> None:
    """Not at once, nor by one that has just begun: it has not heard the others yet."""
    cluster = Cluster()
    for each in roots[:2]:
        cluster.look(each, NOW)
    cluster.look(roots[0], NOW + KEPT - timedelta(seconds=1))
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[0], NOW + KEPT, settled=False)
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[0], NOW + KEPT)
    assert cluster.trusts(roots[0])


def test_roots_that_change_are_trusted_beside_those_before_for_a_while(roots: list[bytes]) -> None:
    """Replicas change one after the other."""
    cluster = Cluster()
    cluster.look(roots[0], NOW)
    cluster.look(roots[1], NOW + timedelta(minutes=1))
    assert cluster.trusts(*roots[:2])
    cluster.look(roots[1], NOW + KEPT + timedelta(minutes=1))
    assert cluster.trusts(roots[1])


def test_roots_that_nobody_says_are_theirs_are_not_trusted(roots: list[bytes]) -> None:
    """Whoever put them there, and whatever else stands in their place."""
    for spoil in (base64.b64encode(roots[1]).decode(), "b3RoZXI=", "%", ""):
        cluster = Cluster()
        cluster.look(roots[0], NOW)
        cluster.found["webhooks"][0]["clientConfig"]["caBundle"] = spoil
        cluster.look(roots[0], NOW)
        assert cluster.trusts(roots[0])


@pytest.mark.parametrize(
    "said", [None, "", "7", "{", '{"x": 7}', '{"x": "2026-01-01T00:00:00"}', "[]", 7, "[" * 200000]
)
def test_nonsense_in_the_annotation_is_mended(roots: list[bytes], said: object) -> None:
    """Then each says anew what is its own."""
    cluster = Cluster()
    for each in roots[:2]:
        cluster.look(each, NOW)
    cluster.found["metadata"]["annotations"] = {SAID: said}
    for each in (*roots[:2], *roots[:2]):
        cluster.look(each, NOW)
    assert cluster.trusts(*roots[:2])
    assert cluster.writes == 4


def test_there_is_an_end_to_it(roots: list[bytes]) -> None:
    """A server that makes new roots at each start, and one whose clock is of another year."""
    cluster = Cluster()
    for number, each in enumerate(roots):
        cluster.look(each, NOW + timedelta(minutes=number))
    assert cluster.trusts(*roots[-MOST - 1 :])
    cluster = Cluster()
    cluster.look(roots[0], NOW + timedelta(days=365))
    cluster.look(roots[1], NOW)
    assert cluster.trusts(roots[1])
