"""Tests of `certs show` by serial, proxy and identity."""

from typing import Any

import pytest

from meshwright.cli.identities.certificates import about
from meshwright.cli.printing.certificates import certificates_lines

OLD = {"cn": "u1.store.shop", "serial": "a1", "state": "revoked", "in_force": False, "revoked_at": "t3"}
OLD |= {"revoked_why": "stolen", "issued_at": "t0", "not_after": "t9", "claimed_from": "10.0.0.1:5"}
NEW = {"cn": "u1.store.shop", "serial": "b2", "state": "claimed", "in_force": True, "not_after": "t9"}
OTHER = {"cn": "u2.store.shop", "serial": "c3", "state": "issued", "in_force": True}
HELD = {"serial": "d4", "not_after": "t5"}
ONE = {"cn": "u1.store.shop", "lacks": [], "service_certificate": HELD}
TWO = {"cn": "u2.store.shop", "lacks": ["never-connected"], "service_certificate": None}
SERVICE = {"identity": "shop/store", "serial": "d4", "uri": "spiffe://x", "dns_names": ["store.shop"]}
FOUND: dict[str, Any] = {
    "proxy_certificates": [OLD, NEW, OTHER],
    "participants": [ONE, TWO],
    "service_certificates": [SERVICE],
}


@pytest.mark.parametrize(
    ("wanted", "proxies", "participants", "services"),
    [
        ("A1", [OLD], [ONE], [SERVICE]),
        ("u1", [OLD, NEW], [ONE], [SERVICE]),
        ("u1.store.shop", [OLD, NEW], [ONE], [SERVICE]),
        ("u2", [OTHER], [TWO], []),
        ("0xd4", [], [ONE], [SERVICE]),
        ("shop/store", [], [], [SERVICE]),
    ],
)
def test_certificates_are_found_by_serial_proxy_or_identity(
    wanted: str, proxies: object, participants: object, services: object
) -> None:
    """The result includes the service certificate that the proxy has acknowledged."""
    expected = {"proxy_certificates": proxies, "participants": participants, "service_certificates": services}
    assert about(FOUND, wanted) == expected


@pytest.mark.parametrize("wanted", ["ff", "u3", "store.shop", "", "u1.store"])
def test_unknown_or_partial_name_finds_no_certificate(wanted: str) -> None:
    """A partial or unknown name is not guessed."""
    assert about(FOUND, wanted) is None


def test_participants_are_unknown_without_a_server() -> None:
    """Without a server the participants are None, which differs from an empty list."""
    offline = {"proxy_certificates": [NEW], "participants": None, "service_certificates": None}
    assert about(offline, "u1") == offline


@pytest.mark.parametrize(
    ("signer", "line"),
    [
        ("ab12", "  signed by somebody else's CA in /etc/ca, valid until t8"),
        ("cd34" * 16, "  signed by another CA than now: cd34cd34cd34cd34"),
        (None, "  valid until t9"),
    ],
)
def test_signer_of_a_certificate_is_shown_if_it_is_known(signer: str | None, line: str) -> None:
    """The ledger's signer is compared with the current CA. Without a recorded signer no line is shown."""
    authority = {"kind": "files", "place": "/etc/ca", "signer": "ab12", "not_after": "t8"}
    result = about({**FOUND, "authority": authority, "proxy_certificates": [{**NEW, "signer": signer}]}, "u1")
    assert result is not None
    lines = [*certificates_lines(result)]
    assert line in lines
    assert sum("signed by" in item for item in lines) == (signer is not None)


def test_known_details_of_a_certificate_are_shown_as_lines() -> None:
    """Each known detail of the certificate and of its proxy has a line."""
    result = about(FOUND, "a1")
    assert result is not None
    assert [*certificates_lines(result)] == [
        "proxy certificate a1 of u1.store.shop: revoked",
        "  issued t0",
        "  valid until t9",
        "  claimed from 10.0.0.1:5",
        "  revoked t3",
        "  revoked because stolen",
        "  not in force: the server refuses this certificate",
        "proxy u1.store.shop: part of the mesh",
        "  presents service certificate d4, valid until t5",
        "service certificate d4 of shop/store",
        "  spiffe://x",
        "  valid from None until None",
        "  store.shop",
    ]
