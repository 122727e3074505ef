"""Tests of one certificate of each kind with OpenSSL: every field, and the accepted purposes."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from certs.contract import KeyKind
from certs.issuers.authority import CertificateAuthority
from certs.issuers.file_authority import WatchedFiles, WatchedIssuer
from certs.keys.pair import KeyPairOptions
from certs.keys.signing_request import judged
from certs.ledger.sqlite import SqliteLedger
from certs.manager import CertificateManager
from certs.proxy import issue_proxy, sign_proxy
from certs.server import ads_server_certificate, webhook_certificate
from certs.state.pair_files import PairFiles
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, TrustDomain
from tests.tools.deadline import HANG_SECONDS
from tests.unit.certs.issuers.example_cas import ca

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")

DAY = timedelta(days=1)
LIFE = 1.05
"""That of a service certificate in days, as it is drawn here: half of the jitter longer."""
SHOP = ServiceIdentity(Namespace("default"), ServiceAccountName("shop"))
PROXY = ProxyName.parse(".".join(["u" * 63, "s" * 63, "n" * 63]))
"""The longest there is: X.520 would end it at 64 characters."""

P256, P384 = "ASN1 OID: prime256v1", "ASN1 OID: secp384r1"
LEAF = {"Basic Constraints: critical": "CA:FALSE", "Key Usage: critical": "Digital Signature"}
CLIENT, SERVER = "TLS Web Client Authentication", "TLS Web Server Authentication"
SERVICE = {
    **LEAF,
    "Extended Key Usage": f"{SERVER}, {CLIENT}",
    "Subject Alternative Name": "URI:spiffe://mesh.example/ns/default/sa/shop, "
    "DNS:shop.default, DNS:shop.example",
}


@dataclass(frozen=True)
class Kind:
    """Expected subject, key, lifetime in days, extensions and accepted purposes of a kind of certificate."""

    subject: str
    key: str
    days: float
    extensions: dict[str, str]
    purposes: tuple[str, ...] = ()
    own: bool = field(default=False)


KINDS = {
    "root": Kind(
        r"CN ?= ?Meshwright CA [0-9a-f]{16}",
        P256,
        3652,
        {
            "Basic Constraints: critical": "CA:TRUE, pathlen:0",
            "Key Usage: critical": "Certificate Sign, CRL Sign",
            "Subject Alternative Name": "URI:spiffe://mesh.example",
        },
        own=True,
    ),
    "server": Kind(
        "CN ?= ?ads",
        P256,
        90,
        {
            **LEAF,
            "Extended Key Usage": SERVER,
            "Subject Alternative Name": "DNS:ads.mesh.example, DNS:localhost, "
            "IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
        },
        ("sslserver",),
    ),
    "webhook": Kind(
        "CN ?= ?webhook",
        P256,
        90,
        {
            **LEAF,
            "Extended Key Usage": SERVER,
            "Subject Alternative Name": "DNS:meshwright.mesh-system.svc",
        },
        ("sslserver",),
    ),
    "service": Kind("CN ?= ?service-[0-9a-f]{16}", P256, LIFE, SERVICE, ("sslserver", "sslclient")),
    **{
        f"service {kind}": Kind(
            "CN ?= ?service-[0-9a-f]{16}",
            f"Public-Key: ({kind.removeprefix('rsa-')} bit)",
            LIFE,
            SERVICE,
            ("sslserver", "sslclient"),
        )
        for kind in (KeyKind.RSA_2048, KeyKind.RSA_3072, KeyKind.RSA_4096)
    },
    "proxy": Kind(f"CN ?= ?{PROXY}", P256, 90, {**LEAF, "Extended Key Usage": CLIENT}, ("sslclient",)),
    "joined proxy": Kind(f"CN ?= ?{PROXY}", P384, 30, {**LEAF, "Extended Key Usage": CLIENT}, ("sslclient",)),
    "service below an intermediate": Kind(
        "CN ?= ?service-[0-9a-f]{16}", P256, LIFE, SERVICE, ("sslserver", "sslclient")
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_openssl_reads_the_expected_fields_and_purposes_of_each_kind(
    kind: str, authority: CertificateAuthority, state: Path, tmp_path: Path, now: datetime
) -> None:
    """Fields, validity, serial number and accepted purposes are those of the kind, and no others."""
    expected = KINDS[kind]
    chain, roots = _made(kind, authority, state, tmp_path, now)
    (tmp_path / "chain.pem").write_bytes(chain)
    (tmp_path / "roots.pem").write_bytes(roots)
    stdout = _run("x509", "-noout", "-text", "-in", "chain.pem", folder=tmp_path).stdout
    names = [item.strip() for item in re.findall(r"^ +(?:Issuer|Subject): (.*)$", stdout, re.MULTILINE)]
    assert "Version: 3 (0x2)" in stdout
    assert re.fullmatch(expected.subject, names[1]), names
    assert re.findall("Signature Algorithm: (.*)", stdout) == ["ecdsa-with-SHA256"] * 2
    assert expected.key in stdout
    extensions = _extensions(stdout)
    key, above = extensions.pop("Subject Key Identifier"), extensions.pop("Authority Key Identifier", None)
    assert extensions == expected.extensions
    assert (names[0] == names[1], above is None) == (expected.own, expected.own)
    assert re.fullmatch("([0-9A-F]{2}:){19}[0-9A-F]{2}", key)
    if not expected.own:
        lower = roots if len(re.findall(b"BEGIN", chain)) == 1 else chain[chain.index(b"-----BEGIN", 10) :]
        (tmp_path / "above.pem").write_bytes(lower)
        upper = _run("x509", "-noout", "-text", "-in", "above.pem", folder=tmp_path).stdout
        assert above == _extensions(upper)["Subject Key Identifier"]
        assert re.search(r"Subject: (.*)", upper)[1] == names[0]  # type: ignore[index] # each has one
    began, ends = (_moment(stdout, item) for item in ("Not Before", "Not After "))
    assert now - began == timedelta(seconds=60)
    assert ends - now == expected.days * DAY
    serial = re.search(r"Serial Number:\s+([0-9a-f:]+)", stdout)
    assert serial is not None
    assert int(serial[1].replace(":", ""), 16).bit_length() > 64, "of 128 random bits"
    assert _purposes(tmp_path, now) == (() if expected.own else expected.purposes)


def _made(
    kind: str, authority: CertificateAuthority, state: Path, folder: Path, now: datetime
) -> tuple[bytes, bytes]:
    """Issue a certificate as the server does. Return its chain and the roots for its verification."""
    pairs, roots = PairFiles(state), authority.trust_bundle()
    match kind.split():
        case ["root"]:
            return roots, roots
        case ["server"]:
            return ads_server_certificate(authority, pairs, now).chain_pem, roots
        case ["webhook"]:
            host = "meshwright.mesh-system.svc"
            return webhook_certificate(authority, pairs, now, host).chain_pem, roots
        case ["service", "below", *_]:
            root = ca("root", now)
            ca("lower", now, root).put(folder / "ca", root)
            lower = WatchedIssuer(WatchedFiles.within(folder / "ca"), TrustDomain("mesh.example"), now)
            return _service(lower, pairs, KeyKind.ECDSA_P256, now), root.pem
        case ["service", *of]:
            return _service(authority, pairs, KeyKind(of[0]) if of else KeyKind.ECDSA_P256, now), roots
        case _:
            with SqliteLedger.open(state / "ledger.sqlite") as ledger:
                if kind == "proxy":
                    return issue_proxy(authority, ledger, PROXY, 90 * DAY, now).chain_pem, roots
                asked = judged(_request())
                return sign_proxy(authority, ledger, PROXY, asked, 30 * DAY, now).chain_pem, roots


def _service(
    issuer: CertificateAuthority | WatchedIssuer, pairs: PairFiles, kind: KeyKind, now: datetime
) -> bytes:
    manager = CertificateManager(issuer, pairs, DAY, lambda: 0.5, KeyPairOptions(kind))
    return manager.ensure(SHOP, ("shop.example", "shop.default"), now).chain_pem


def _request() -> bytes:
    """Return a signing request that also asks for names and usages that the proxy must not get."""
    key = ec.generate_private_key(ec.SECP384R1())
    alternative = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("spiffe://mesh.example/x")])
    wanted = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).add_extension(
        alternative, critical=False
    ).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)  # fmt: skip
    return wanted.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def _extensions(said: str) -> dict[str, str]:
    """Return the value of each extension by its title."""
    result = re.findall(r"^ {12}X509v3 ([^\n]*)\n((?: {16}[^\n]*\n)+)", said, re.MULTILINE)
    return {
        title.strip().removesuffix(":"): " ".join(value.split()).removeprefix("keyid:")
        for title, value in result
    }


def _moment(said: str, which: str) -> datetime:
    match = re.search(rf"{which}: (.*) GMT", said)
    assert match is not None
    return datetime.strptime(f"{match[1]} +0000", "%b %d %H:%M:%S %Y %z")


def _purposes(folder: Path, now: datetime) -> tuple[str, ...]:
    """Return the purposes for which OpenSSL accepts the chain below the roots."""
    at = ["-x509_strict", "-attime", str(int(now.timestamp())), "-untrusted", "chain.pem"]
    return tuple(
        item
        for item in ("sslserver", "sslclient")
        if _run(
            "verify", *at, "-purpose", item, "-CAfile", "roots.pem", "chain.pem", folder=folder
        ).returncode
        == 0
    )


def _run(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["openssl", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
