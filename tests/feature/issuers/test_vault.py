"""Tests of service certificates from the PKI of a real OpenBao."""

import base64
import http.client
import json
import shutil
import socket
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from certs.contract import KeyKind, Names, Usage
from certs.errors import CertificateError, IssuerError, StateError
from certs.issuers.vault.http import VaultApi, VaultRefused
from certs.issuers.vault.issuer import VaultIssuer, VaultPki
from certs.issuers.vault.login import ByAppRole, ByKubernetes, ByToken, Login
from certs.keys.bundle import TrustBundle
from certs.keys.pair import KeyPairOptions, Pair, issue_pair
from tests.feature.issuers.conftest import DOMAIN, Pki
from tests.tools.openbao import OpenBao

HOUR = timedelta(hours=1)
NAMES = Names(
    "service-1fd669f05426379b",
    uris=("spiffe://mesh.example/ns/shop/sa/store",),
    dns_names=("store.shop", "store.shop.svc.cluster.local"),
)


def _now() -> datetime:
    return datetime.now(UTC)


def _issued(issuer: VaultIssuer, names: Names = NAMES, making: KeyPairOptions | None = None) -> Pair:
    return issue_pair(issuer, Usage.SERVICE, names, HOUR, _now(), making or KeyPairOptions())


@pytest.mark.parametrize("kind", [KeyKind.ECDSA_P256, KeyKind.RSA_2048])
def test_vault_role_signs_the_requested_certificate(pki: Pki, tmp_path: Path, kind: KeyKind) -> None:
    """Names and usages are those of the request, and OpenSSL verifies the chain to the mount's root."""
    issuer = pki.issuer()
    pair = _issued(issuer, making=KeyPairOptions(kind))
    assert pair.leaf.names.alternatives == NAMES.alternatives
    assert pair.leaf.serves(Usage.SERVICE)
    assert abs(pair.leaf.not_after - _now() - HOUR) < timedelta(minutes=2)
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl")
    (tmp_path / "chain.pem").write_bytes(pair.chain_pem)
    (tmp_path / "roots.pem").write_bytes(issuer.trust_bundle())
    result = subprocess.run(
        [openssl, "verify", "-CAfile", str(tmp_path / "roots.pem"), str(tmp_path / "chain.pem")],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result


def test_requested_names_are_sent_beside_the_csr(pki: Pki) -> None:
    """A role that ignores the CSR's names still signs the requested ones."""
    pki.role(use_csr_sans=False, use_csr_common_name=False)
    assert _issued(pki.issuer()).leaf.names.alternatives == NAMES.alternatives


def test_shorter_lifetime_of_a_role_is_accepted(pki: Pki) -> None:
    """The lifetime in the certificate counts."""
    pki.role(max_ttl="600s", ttl="600s")
    assert _issued(pki.issuer()).leaf.not_after - _now() < timedelta(minutes=11)


def test_requested_lifetime_is_limited_to_that_of_the_ca(pki: Pki) -> None:
    """Vault refuses a certificate that outlives its CA, so a shorter one is requested."""
    pki.bao("DELETE", f"{pki.mount}/root")
    root = {"common_name": "short", "ttl": "20m", "key_type": "ec", "key_bits": 256}
    pki.bao("POST", f"{pki.mount}/root/generate/internal", root)
    assert timedelta(minutes=15) < _issued(pki.issuer()).leaf.not_after - _now() < timedelta(minutes=20)


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            {"allowed_uri_sans": ["spiffe://other/*"]},
            "answered 400 at pki-.*/sign/mesh: URI .*not valid for this role",
        ),
        (
            {"allow_any_name": False, "allowed_domains": ["x.example"]},
            "answered 400 .*not allowed by this role",
        ),
        ({"key_type": "rsa", "key_bits": 4096}, "answered 400 .*role requires keys of type rsa"),
        (
            {"client_flag": False},
            ("has other key usages than requested; check which extended key usages the issuer allows"),
        ),
        ({"use_csr_sans": False, "no_such_thing": True}, ""),
    ],
)
def test_refusal_of_a_vault_role_is_reported_in_its_words(
    pki: Pki, told: dict[str, object], sentence: str
) -> None:
    """The error has Vault's message, or names the usage that differs."""
    pki.role(**told)
    if not sentence:
        _issued(pki.issuer())
        return
    with pytest.raises(IssuerError, match=sentence):
        _issued(pki.issuer())


def test_missing_vault_role_or_mount_is_named(pki: Pki) -> None:
    """The error has the path of the request and Vault's answer."""
    with pytest.raises(VaultRefused, match=f"answered 400 at {pki.mount}/sign/nobody: unknown role: nobody"):
        _issued(pki.issuer(role="nobody"))
    api, login = pki.bao.api, ByToken(pki.file("token", pki.token()))
    with pytest.raises(VaultRefused, match="answered 403 at nowhere/cert/ca_chain"):
        VaultIssuer.open(api, login, VaultPki("nowhere", "mesh"), DOMAIN, TrustBundle.from_pems([]))


def _app_role(pki: Pki, **told: object) -> ByAppRole:
    bao, at = pki.bao, f"approle-{pki.mount}"
    bao("POST", f"sys/auth/{at}", {"type": "approle"})
    bao("POST", f"auth/{at}/role/mesh", {"token_policies": [pki.mount], **told})
    role: Any = bao("GET", f"auth/{at}/role/mesh/role-id")
    secret: Any = bao("POST", f"auth/{at}/role/mesh/secret-id", {})
    return ByAppRole(pki.file("approle", f"{role['data']['role_id']}\n{secret['data']['secret_id']}\n"), at)


def test_approle_token_is_renewed_and_replaced(pki: Pki) -> None:
    """The token is renewed after half of its lifetime.

    At its end or after a revocation there is a new login.
    """
    login = _app_role(pki, token_ttl="60s", token_max_ttl="90s")
    issuer, now = pki.issuer(login), _now()
    tokens = _tokens_of(issuer, now)
    first, same, renewed = (
        next(tokens),
        tokens.send(now + timedelta(seconds=20)),
        tokens.send(now + timedelta(seconds=35)),
    )
    assert first == same == renewed
    # A minute later by this clock, a renewal gains nothing, because the 90 s are over.
    other = tokens.send(now + timedelta(seconds=95))
    assert other != first
    pki.bao("POST", "auth/token/revoke", {"token": other})
    _issued(issuer)


def _tokens_of(issuer: VaultIssuer, now: datetime) -> Any:
    while True:
        now = yield issuer._session.token(now)


def test_token_of_our_own_login_is_revoked_on_close(pki: Pki) -> None:
    """A token from a login ends with the issuer.

    A token from a file belongs to the operator and stays valid.
    """
    login = _app_role(pki, token_ttl="60s", token_max_ttl="90s")
    issuer, now = pki.issuer(login), _now()
    tokens = _tokens_of(issuer, now)
    first = next(tokens)
    second = tokens.send(now + timedelta(seconds=95))
    assert [_is_good(pki, item) for item in (first, second)] == [False, True]
    issuer.close()
    assert not _is_good(pki, second)
    issuer.close()
    with pytest.raises(IssuerError, match="cannot be reached: the server is stopping"):
        _issued(issuer)
    given = pki.token()
    issuer = pki.issuer(ByToken(pki.file("given", given)))
    _issued(issuer)
    issuer.close()
    assert _is_good(pki, given)


def test_refused_signing_leaves_no_login_tokens(pki: Pki) -> None:
    """Each try logs in again, and Vault would keep the tokens for a month by default.

    Only the last one stays until the issuer closes.
    """
    pki.bao("PUT", f"sys/policies/acl/{pki.mount}", {"policy": 'path "x" { capabilities = ["read"] }'})
    issuer = pki.issuer(_app_role(pki))

    def left() -> set[str]:
        result: Any = pki.bao("LIST", "auth/token/accessors")
        return set(result["data"]["keys"])

    before = left()
    for _ in range(4):
        with pytest.raises(VaultRefused, match=f"answered 403 at {pki.mount}/sign/mesh: .*permission denied"):
            _issued(issuer)
    assert len(left() - before) == 1
    issuer.close()
    assert left() == before


def _is_good(pki: Pki, token: str) -> bool:
    try:
        pki.bao("POST", "auth/token/lookup", {"token": token})
    except VaultRefused:
        return False
    return True


def test_login_with_a_service_account_token(pki: Pki) -> None:
    """A JWT for the right audience logs in. Another audience is refused."""
    bao, at, key = pki.bao, f"jwt-{pki.mount}", ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    bao("POST", f"sys/auth/{at}", {"type": "jwt"})
    bao("POST", f"auth/{at}/config", {"jwt_validation_pubkeys": [public]})
    role = {
        "role_type": "jwt",
        "user_claim": "sub",
        "bound_audiences": ["bao"],
        "token_policies": [pki.mount],
    }
    bao("POST", f"auth/{at}/role/mesh", role)
    file = pki.file("jwt", _jwt(key, "bao"))
    _issued(pki.issuer(ByKubernetes("mesh", file, at)))
    file.write_text(_jwt(key, "somebody else"))
    with pytest.raises(VaultRefused, match=f"answered 400 at auth/{at}/login: .*audience"):
        _issued(pki.issuer(ByKubernetes("mesh", file, at)))


def _jwt(key: ec.EllipticCurvePrivateKey, audience: str) -> str:
    def encoded(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    claims = {
        "sub": "system:serviceaccount:mesh:meshwright",
        "aud": audience,
        "nbf": time.time() - 60,
        "exp": time.time() + 600,
    }
    signed = ".".join(encoded(json.dumps(item).encode()) for item in ({"alg": "ES256", "typ": "JWT"}, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def test_expired_token_is_read_again_from_its_file(pki: Pki) -> None:
    """Another program replaces the file, so the next try reads it again."""
    token = pki.token(ttl="30m")
    file = pki.file("token", token)
    issuer = pki.issuer(ByToken(file))
    _issued(issuer)
    pki.bao("POST", "auth/token/revoke", {"token": token})
    with pytest.raises(VaultRefused, match="answered 403 at auth/token/lookup-self: permission denied"):
        _issued(issuer)
    file.write_text(pki.token())
    _issued(issuer)


def test_unreadable_token_file_is_tolerated_until_the_token_expires(pki: Pki) -> None:
    """The failed renewal is logged once, and the present token is used until its end."""
    token = pki.token(ttl="30m", explicit_max_ttl="30m", renewable=False)
    file, now = pki.file("token", token), _now()
    tokens = _tokens_of(pki.issuer(ByToken(file)), now)
    assert next(tokens) == token
    file.unlink()
    with structlog.testing.capture_logs() as logs:
        for minutes in (20, 25):
            assert tokens.send(now + timedelta(minutes=minutes)) == token
    (answer,) = (log for log in logs if log["event"] == "Vault login cannot be renewed")
    assert answer["reason"].startswith("cannot read ")
    assert answer["reason"].endswith(": No such file or directory")
    with pytest.raises(StateError, match=r"^cannot read .*: No such file"):
        tokens.send(now + timedelta(minutes=31))


def test_sealed_or_unreachable_vault_is_reported_and_roots_are_kept(pki: Pki) -> None:
    """The saved roots stay valid, also after a restart. Without saved roots the start fails."""
    issuer = pki.issuer()
    known = TrustBundle.from_pems([issuer.trust_bundle()])
    with pki.bao.sealed():
        with pytest.raises(VaultRefused, match=r"answered 503 at .*: Vault is sealed"):
            _issued(issuer)
        login, parts = ByToken(pki.folder / "token"), VaultPki(pki.mount, "mesh")
        again = VaultIssuer.open(pki.bao.api, login, parts, DOMAIN, known)
        assert again.trust_bundle() == known.pem
        with pytest.raises(VaultRefused, match="sealed"):
            VaultIssuer.open(pki.bao.api, login, parts, DOMAIN, TrustBundle.from_pems([]))
    _issued(issuer)
    with (
        _port() as port,
        pytest.raises(IssuerError, match=f"Vault https://127.0.0.1:{port} cannot be reached"),
    ):
        VaultIssuer.open(
            VaultApi(f"https://127.0.0.1:{port}"), login, parts, DOMAIN, TrustBundle.from_pems([])
        )


@contextmanager
def _port() -> Iterator[int]:
    """Yield a port that is reserved but not listening."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


_OK = b"HTTP/1.1 200 OK\r\nContent-Length: "


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"", "cannot be reached: timed out"),
        (b"SSH-2.0-OpenSSH\r\n", "cannot be reached"),
        (_OK + b"6\r\n\r\n<html>", "answered 200 at .*, but not with a JSON object"),
        (_OK + b"2\r\n\r\n{}", "unexpected answer of Vault: the chain is missing"),
        (
            b"HTTP/1.1 307 X\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n",
            "answered 307, a redirect, which is not followed; set vault_address to the address of the",
        ),
        (
            _OK + b'33\r\n\r\n{"data": {"certificate": "junk"}} ',
            "it has text that is not a readable certificate in PEM",
        ),
        (_OK + b"100000\r\n\r\n" + b"[" * 100000, "answered 200 at .*, but not with a JSON object"),
    ],
)  # fmt: skip
def test_answer_that_is_not_from_vault_is_reported(answer: bytes, sentence: str) -> None:
    """A silent server, another protocol, a redirect and malformed JSON have messages."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        api = VaultApi(f"http://127.0.0.1:{server.getsockname()[1]}", seconds=60 if answer else 0.5)
        with _answering(server, answer), pytest.raises(IssuerError, match=sentence):
            VaultIssuer.open(
                api, ByToken(Path("/none")), VaultPki("pki", "mesh"), DOMAIN, TrustBundle.from_pems([])
            )


def test_invalid_host_name_of_vault_is_reported() -> None:
    """For such a name the library raises an error that is no OSError."""
    api, login = VaultApi("https://vault..example"), ByToken(Path("/none"))
    with pytest.raises(IssuerError, match=r"Vault https://vault..example cannot be reached"):
        VaultIssuer.open(api, login, VaultPki("pki", "mesh"), DOMAIN, TrustBundle.from_pems([]))


@contextmanager
def _answering(server: socket.socket, answer: bytes) -> Iterator[None]:
    """Accept one connection, and send the answer if there is one."""
    kept: list[socket.socket] = []

    def serve() -> None:
        connection, _ = server.accept()
        kept.append(connection)
        if answer:
            connection.recv(65536)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        for item in kept:
            item.close()


def test_intermediate_issuer_needs_its_root_file(pki: Pki, bao: OpenBao) -> None:
    """The chain has the intermediate without the root, which the setting must give if the mount lacks it."""
    at = f"{pki.mount}-below"
    bao("POST", f"sys/mounts/{at}", {"type": "pki", "config": {"max_lease_ttl": "43800h"}})
    csr: Any = bao("POST", f"{at}/intermediate/generate/internal", {"common_name": "below", "key_type": "ec"})
    body = {"csr": csr["data"]["csr"], "format": "pem_bundle", "ttl": "43800h"}
    made: Any = bao("POST", f"{pki.mount}/root/sign-intermediate", body)
    below = made["data"]["certificate"].split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    bao("POST", f"{at}/intermediate/set-signed", {"certificate": below})
    bao("POST", f"{at}/roles/mesh", {"allow_any_name": True, "enforce_hostnames": False,
                                     "allowed_uri_sans": ["*"], "key_type": "any"})  # fmt: skip
    bao("PUT", f"sys/policies/acl/{pki.mount}",
        {"policy": f'path "{at}/sign/*" {{ capabilities = ["update"] }}'})  # fmt: skip
    login = ByToken(pki.file("token", pki.token()))

    def opened(roots: Path | None) -> VaultIssuer:
        return VaultIssuer.open(
            bao.api, login, VaultPki(at, "mesh", roots), DOMAIN, TrustBundle.from_pems([])
        )

    with pytest.raises(IssuerError, match=f"PKI {at} of .* lacks a root in its chain"):
        opened(None)
    with pytest.raises(StateError, match=r"vault_roots /none/roots.pem is missing"):
        opened(Path("/none/roots.pem"))
    root = pki.issuer(login).trust_bundle()
    pair = _issued(opened(pki.file("roots.pem", root.decode())))
    assert pair.chain_pem.count(b"BEGIN CERTIFICATE") == 2


SECRET = "planted-secret-5e1f"


@pytest.mark.parametrize(
    ("login", "content", "sentence"),
    [
        (ByToken, f"{SECRET} {SECRET}", "must contain only a token"),
        (ByToken, f"{SECRET}\n{SECRET}", "must contain only a token"),
        (ByToken, f"{SECRET}\x01", "must contain only a token"),
        (ByToken, f"{SECRET}é", ", but it is not ASCII text"),
        (ByToken, SECRET, "answered 403 at auth/token/lookup-self: permission denied"),
        (ByAppRole, SECRET, "must contain only a role_id and a secret_id, one on each line"),
        (ByAppRole, f"{SECRET}\n{SECRET}", "answered .* at auth/approle/login"),
        (lambda file: ByKubernetes("mesh", file), SECRET, "answered .* at auth/kubernetes/login"),
    ],
)
def test_error_contains_no_secret(
    pki: Pki, login: Callable[[Path], Login], content: str, sentence: str
) -> None:
    """The error, its causes and the issuer's representation do not contain the secret."""
    issuer = pki.issuer(login(pki.file("secret", content)))
    with pytest.raises(CertificateError, match=sentence) as failed:
        _issued(issuer)
    text = "".join(traceback.format_exception(failed.value)) + repr(failed.value) + repr(issuer)
    assert SECRET not in text


def test_missing_token_file_and_wrong_ca_are_named_with_their_setting(pki: Pki) -> None:
    """Each error names the file and its purpose or the failed verification."""
    with pytest.raises(StateError, match=r"cannot read .*/none/token, which must have a token: No such"):
        _issued(pki.issuer(ByToken(Path("/none/token"))))
    junk = pki.file("junk.pem", "junk")
    empty = TrustBundle.from_pems([])
    for ca, kind, sentence in (
        (junk, StateError, "vault_ca .*junk.pem lacks readable certificates in PEM"),
        (Path("/none/ca"), StateError, "vault_ca /none/ca lacks readable certificates in PEM"),
        (None, IssuerError, "cannot be reached: .*CERTIFICATE_VERIFY_FAILED"),
    ):
        api = VaultApi(pki.bao.api.address, ca)
        with pytest.raises(kind, match=sentence):
            VaultIssuer.open(api, ByToken(junk), VaultPki(pki.mount, "mesh"), DOMAIN, empty)


def test_private_key_is_never_sent_to_vault(pki: Pki, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bytes that are sent contain a signing request and no line of the key."""
    sent: list[bytes] = []
    send = http.client.HTTPConnection.send

    def recorded(self: http.client.HTTPConnection, data: Any) -> None:
        sent.append(data if isinstance(data, bytes) else str(data).encode())
        send(self, data)

    monkeypatch.setattr(http.client.HTTPConnection, "send", recorded)
    pair = _issued(pki.issuer())
    everything = b"".join(sent)
    assert b"CERTIFICATE REQUEST" in everything
    assert b"PRIVATE" not in everything
    _, *private, _, _ = pair.key.reveal().splitlines()  # the last line but one has nothing but the public key
    assert private
    assert not any(line in everything for line in private)
