"""Tests of service certificates from cert-manager's own controllers on a real API server."""

import base64
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from certs.authority_files.store import AuthorityFiles
from certs.contract import Issuer, IssuerKind, KeyKind, Usage
from certs.errors import IssuerError, StateError
from certs.issuer_selection import CertManagerSettings, open_issuer
from certs.issuers.reference import IssuerReference
from certs.issuers.succeeding_issuer import Role
from certs.issuers.succession import SETTLING
from certs.keys.bundle import TrustBundle
from certs.keys.pair import KeyPairOptions
from certs.roots.role_succession import RoleSuccession
from certs.roots.succeeding_authority import OpenedAuthority
from certs.state.pair_files import PairFiles
from certs.state.stored_pair import Holder
from tests.kubernetes.tools.accounts import Accounts
from tests.kubernetes.tools.certificate_issuers import (
    DOMAIN,
    GROUP,
    HOUR,
    NAMES,
    SECONDS,
    Opened,
    Signing,
    is_ready,
    issued,
    new_ca,
    now,
    self_signed,
    text,
)
from tests.kubernetes.tools.permissions import Grant, asked, granted
from tests.tools import libyaml
from tests.tools.deadline import Deadline, wait_until
from tests.tools.own_authority import own_authority
from tests.unit.certs.issuers.example_cas import Ca
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.processes import Service
from tools.real_parts.signing import RESOURCES

GRANTS: Final = Path(__file__).parents[3] / "docs" / "kubernetes" / "cert-manager.yaml"


@pytest.mark.parametrize("kind", [KeyKind.ECDSA_P256, KeyKind.RSA_2048])
def test_issuer_signs_the_requested_names_and_key(
    controllers: Service, signing: Signing, opened: Opened, tmp_path: Path, kind: KeyKind
) -> None:
    """An intermediate's chain is included, and its root is trusted.

    The CertificateRequest is deleted afterwards.
    """
    root = new_ca()
    signing.secret(new_ca("intermediate", above=root), root)
    issuer = opened(signing.open(signing.ca_issuer()))
    assert issuer.trust_bundle() == TrustBundle.from_pems([root.pem]).pem
    pair = issued(issuer, KeyPairOptions(kind))
    assert pair.leaf.names == NAMES
    assert pair.leaf.serves(Usage.SERVICE)
    assert abs(pair.leaf.not_after - now() - HOUR) < timedelta(minutes=2)
    assert pair.chain_pem.count(b"BEGIN CERTIFICATE") == 2
    (usage,) = (
        extension.value
        for extension in x509.load_pem_x509_certificate(pair.chain_pem).extensions
        if isinstance(extension.value, x509.KeyUsage)
    )
    assert usage.digital_signature
    assert not usage.key_cert_sign
    assert not signing.listed()
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("there is no openssl")
    for name, pem in (("leaf", pair.chain_pem), ("roots", issuer.trust_bundle())):
        (tmp_path / name).write_bytes(pem)
    chain = ["-untrusted", str(tmp_path / "leaf"), str(tmp_path / "leaf")]
    result = subprocess.run(
        [openssl, "verify", "-purpose", "sslserver", "-CAfile", str(tmp_path / "roots"), *chain],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result


def test_cluster_issuer_with_a_self_signed_root_signs_certificates(
    controllers: Service, signing: Signing, opened: Opened
) -> None:
    """cert-manager also creates the root.

    Requests to a ClusterIssuer are made in the configured namespace.
    """
    name = f"mesh-{signing.namespace}"
    key, csr = self_signed(name)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signing.make("Secret", "own", "v1", data={"tls.key": text(pem)})
    signing.make("Issuer", "itself", spec={"selfSigned": {}})
    signing.until_ready("itself")
    asked_for = {"request": text(csr), "isCA": True, "duration": "48h", "usages": ["cert sign", "crl sign"]}
    metadata = {
        "name": "root", "namespace": signing.namespace,
        "annotations": {"cert-manager.io/private-key-secret-name": "own"},
    }  # fmt: skip
    spec = {**asked_for, "issuerRef": {"kind": "Issuer", "name": "itself"}}
    signing.ask.create(
        {"apiVersion": GROUP, "kind": "CertificateRequest", "metadata": metadata, "spec": spec}
    )
    done = signing.ask.until(f"{signing.requests}/root", is_ready)
    root = x509.load_pem_x509_certificate(base64.b64decode(done["status"]["certificate"]))
    signing.ask("DELETE", f"{signing.requests}/root")
    signing.secret(Ca(root, key), name=name, at=RESOURCES)
    signing.make("ClusterIssuer", name, at="", spec={"ca": {"secretName": name}})
    try:
        signing.ask.until(f"/apis/{GROUP}/clusterissuers/{name}", is_ready)
        issuer = opened(signing.open(f"ClusterIssuer/{name}"))
        assert issued(issuer).leaf.names == NAMES
        assert issuer.trust_bundle() == root.public_bytes(serialization.Encoding.PEM)
    finally:
        signing.ask("DELETE", f"/apis/{GROUP}/clusterissuers/{name}")


def test_certificate_does_not_outlive_its_ca(controllers: Service, signing: Signing, opened: Opened) -> None:
    """cert-manager would sign for longer than the CA is valid, so less is requested, also the next time."""
    root = new_ca(days=0, lasting=timedelta(minutes=20))
    signing.secret(root)
    issuer = opened(signing.open(signing.ca_issuer(), known=TrustBundle.from_pems([root.pem])))
    for _ in range(2):
        assert issued(issuer).leaf.not_after <= root.certificate.not_valid_after_utc


def test_new_ca_is_trusted_before_it_signs(controllers: Service, signing: Signing, tmp_path: Path) -> None:
    """All roots that were used are trusted each time the issuer changes.

    The changes are: the built-in CA, cert-manager's, another CA there, and back.
    """
    state = tmp_path / "state"
    state.mkdir()
    own = own_authority(tmp_path / "own", DOMAIN, now())
    whose = OpenedAuthority(own, IssuerKind.BUILT_IN, str(tmp_path))
    record = RoleSuccession(AuthorityFiles(state), Role.SERVICES)
    ends = PairFiles(state).services_end
    roots = {name: TrustBundle.from_pems([item]) for name, item in (("own", own.trust_bundle()),)}
    first, second = new_ca("first"), new_ca("second")
    roots |= {name: TrustBundle.from_pems([ca.pem]) for name, ca in (("first", first), ("second", second))}

    def trusted(*names: str) -> bytes:
        return TrustBundle.from_pems(roots[name].pem for name in names).pem

    def kept(issuer: Issuer, account: str) -> None:
        PairFiles(state).keep(Holder(f"services/shop/{account}"), issued(issuer), None)

    built_in = open_issuer(None, whose, record, ends, now())
    kept(built_in.issuer, "before")
    signing.secret(first)
    reference = IssuerReference.parse(signing.ca_issuer())
    cert_manager_settings = CertManagerSettings(
        reference, signing.namespace, SECONDS, kubeconfig=signing.kubeconfig
    )
    now_asked = open_issuer(cert_manager_settings, whose, record, ends, now())
    try:
        assert now_asked.issuer.trust_bundle() == trusted("own", "first")
        assert now_asked.issuer.signing_bundle() == trusted("own", "first")
        kept(now_asked.issuer, "after")
        signing.replace_secret(second)
        with pytest.raises(IssuerError, match="with another root, which proxies do not trust yet"):
            _until_other(now_asked.issuer)
        noticed = now()
        now_asked.tend(noticed)
        assert now_asked.issuer.trust_bundle() == trusted("own", "first", "second")
        assert now_asked.issuer.settled() == noticed + SETTLING
        kept(now_asked.issuer, "at-last")
    finally:
        now_asked.close()
    back = open_issuer(None, whose, record, ends, now())
    assert back.issuer.trust_bundle() == trusted("own", "first", "second")
    assert issued(back.issuer).leaf.names == NAMES


def _until_other(issuer: Issuer) -> None:
    """Request certificates until cert-manager uses its other CA."""
    deadline = Deadline(SECONDS)
    while not deadline.has_passed():
        issued(issuer)


@pytest.mark.parametrize(
    ("issuer", "sentence"),
    [
        ("Issuer/nobody", r"cannot get issuers.cert-manager.io test-\d+/nobody: .*not found"),
        ("ClusterIssuer/nobody", "cannot get clusterissuers.cert-manager.io nobody: .*not found"),
        (
            "Issuer/itself",
            r"Issuer/itself in namespace test-\d+ signs each certificate with the certificate's own key",
        ),
        ("Issuer/mesh", r"Issuer/mesh in namespace test-\d+ is not ready: .*secrets? \"ca\" not found"),
    ],
)
def test_issuer_that_cannot_sign_is_reported_with_its_cause(
    controllers: Service, signing: Signing, issuer: str, sentence: str
) -> None:
    """The issuer and the cause are named before any request is made."""
    signing.make("Issuer", "itself", spec={"selfSigned": {}})
    signing.make("Issuer", "mesh", spec={"ca": {"secretName": "ca"}})
    path = f"/apis/{GROUP}/namespaces/{signing.namespace}/issuers/mesh"
    signing.ask.until(path, lambda result: result.get("status", {}).get("conditions"))
    with pytest.raises(IssuerError, match=sentence):
        signing.open(issuer)
    assert not signing.listed()


def test_missing_or_empty_roots_file_is_a_setting_error(signing: Signing, tmp_path: Path) -> None:
    """A file of roots without a certificate is reported as an error of the setting."""
    empty = tmp_path / "empty"
    empty.write_text("")
    for file, sentence in (
        (tmp_path / "none", "cert_manager_roots .*none is missing"),
        (empty, "lacks a root certificate; it must have certificates in PEM"),
    ):
        with pytest.raises(StateError, match=sentence):
            signing.open("Issuer/mesh", roots=file)


def test_missing_grant_or_namespace_is_reported(signing: Signing, accounts: Accounts) -> None:
    """The error names the missing grant and the manifest that has it, or the missing namespace."""
    account = accounts.make("nobody", ())
    with pytest.raises(IssuerError, match="grants no `list` on `certificaterequests.cert-manager.io` to .*"
                                          r"\(docs/kubernetes/cert-manager.yaml grants it\)"):  # fmt: skip
        signing.open("Issuer/mesh", kubeconfig=account.kubeconfig)
    with pytest.raises(IssuerError, match=r"certificaterequests.cert-manager.io in namespace nowhere: .*404"):
        signing.open("Widget.example.com/x", namespace="nowhere")


def test_issuer_grants_suffice_and_are_all_used(
    controllers: Service, signing: Signing, accounts: Accounts, opened: Opened, shared_cluster: RunningCluster
) -> None:
    """The API server's audit log shows that every grant of our manifest is used."""
    signing.secret(new_ca())
    reference = signing.ca_issuer()
    account = accounts.make("meshwright", ())
    documents = list(libyaml.load_all(GRANTS.read_text("utf-8")))
    for document in documents:
        _moved(document, signing.namespace)
    accounts.kubectl.apply(*documents)
    try:
        _until_granted(lambda: signing.open(reference, kubeconfig=account.kubeconfig).close())
        issued(opened(signing.open(reference, kubeconfig=account.kubeconfig)))
        with pytest.raises(IssuerError, match="not found"):
            _until_granted(
                lambda: signing.open("ClusterIssuer/nobody", kubeconfig=account.kubeconfig).close()
            )
        unused = partial(_unused, documents, shared_cluster.place.audit, account.user)
        wait_until(lambda: not unused(), SECONDS, unused)  # what is answered is logged a moment later
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            accounts.kubectl("delete", kind, f"meshwright-issuer-{signing.namespace}")


def _unused(documents: list[dict[str, Any]], log: Path, user: str) -> list[Grant]:
    used = [item.grant for item in asked(log, user) if item.is_allowed]
    return [grant for grant in granted(documents) if not any(map(grant.covers, used))]


def _moved(document: dict[str, Any], namespace: str) -> None:
    """Move a manifest into a test's namespace; cluster-scoped objects get another name."""
    metadata = document["metadata"]
    if "namespace" in metadata:
        metadata["namespace"] = namespace
    else:
        metadata["name"] = f"{metadata['name']}-{namespace}"
        if "roleRef" in document:
            document["roleRef"]["name"] = metadata["name"]
    for subject in document.get("subjects", ()):
        subject["namespace"] = namespace


def _until_granted(does: Callable[[], None]) -> None:
    """Repeat a call until it is permitted, because an API server applies roles with a delay."""
    deadline = Deadline(SECONDS)
    while True:
        try:
            does()
        except IssuerError as error:
            if "grants" not in str(error) or deadline.has_passed():
                raise
            time.sleep(deadline.pause())
        else:
            return


def test_pending_request_is_signed_after_controllers_and_api_server_restart(
    controllers: Service, shared_cluster: RunningCluster, signing: Signing, opened: Opened,
    aside: ThreadPoolExecutor,
) -> None:  # fmt: skip
    """A request that was made before both were killed is answered once they are back."""
    signing.secret(new_ca())
    issuer = opened(signing.open(signing.ca_issuer(), seconds=4 * SECONDS))
    controllers.kill()
    try:
        answered = aside.submit(issued, issuer)
        signing.waiting()
        shared_cluster.api.kill()
        shared_cluster.api.again()
    finally:
        controllers.again()
    assert answered.result(4 * SECONDS).leaf.names == NAMES
