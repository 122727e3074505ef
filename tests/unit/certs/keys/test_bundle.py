"""Tests of trust bundles as values."""

from datetime import datetime
from itertools import permutations
from pathlib import Path

import pytest

from certs.keys.bundle import TrustBundle
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority


@pytest.fixture
def roots(tmp_path: Path, now: datetime) -> list[bytes]:
    """Return three roots."""
    paths = (tmp_path / str(number) for number in range(3))
    return [own_authority(path, TrustDomain("a.example"), now).trust_bundle() for path in paths]


def test_bundles_of_the_same_roots_have_the_same_bytes(roots: list[bytes]) -> None:
    """Order, repetitions and comments do not matter."""
    made = {TrustBundle.from_pems([b"# a comment\n" + order[0], *order]) for order in permutations(roots)}
    (bundle,) = made
    assert bundle.pem.count(b"BEGIN CERTIFICATE") == len(bundle.fingerprints) == 3
    assert list(bundle.fingerprints) == sorted(bundle.fingerprints)
    assert TrustBundle.from_pems([bundle.pem]) == bundle


def test_union_of_two_bundles_holds_both(roots: list[bytes]) -> None:
    """The order does not matter. The union of a bundle with itself is the same object."""
    one, two = TrustBundle.from_pems(roots[:2]), TrustBundle.from_pems(roots[1:])
    assert one.union(two) == two.union(one) == TrustBundle.from_pems(roots)
    assert one.union(one) is one
    assert one.union(two).holds(one)
    assert not one.holds(two)
    assert (one.digest == two.digest, one.digest == TrustBundle.from_pems(roots[:2]).digest) == (False, True)


def test_empty_text_is_an_empty_bundle_and_invalid_pem_is_refused() -> None:
    """An invalid certificate raises ValueError."""
    assert TrustBundle.from_pems([b" \n"]) == TrustBundle.from_pems([]) == TrustBundle(b"", ())
    with pytest.raises(ValueError, match="PEM"):
        TrustBundle.from_pems([b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
