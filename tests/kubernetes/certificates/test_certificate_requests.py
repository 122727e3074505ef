"""CertificateRequests of ours, as somebody else answers them: whose controller is the test."""

import asyncio
import base64
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.contract import Issuer, Names
from certs.errors import IssuerError
from certs.issuers.cert_manager.issuer import CertManagerIssuer
from certs.issuers.cert_manager.requests import LABEL, OURS, UNTIL
from certs.keys.bundle import TrustBundle
from certs.keys.pair import Pair
from certs.keys.profile import alternative_names
from meshwright.kube.api import Api
from tests.kubernetes.tools.certificate_issuers import (
    GROUP,
    HOUR,
    NAMES,
    SECONDS,
    Opened,
    Signing,
    issued,
    new_ca,
    now,
    text,
)
from tests.kubernetes.tools.kubectl import Kubectl
from tests.tools.deadline import Deadline, wait_until
from tests.unit.certs.issuers.cas import Ca
from tools.real_parts.processes import Service

APPROVED: Final = {"type": "Approved", "status": "True", "reason": "Test"}
READY: Final = {"type": "Ready", "status": "True", "reason": "Issued"}
ROOTLESS: Final = (
    r"does not return a root with its certificates \(`status\.ca` is missing\); set cert_manager_roots to a "
    "file with the root"
)


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        (
            [{"type": "Denied", "status": "True", "reason": "No", "message": "not by us"}],
            "it was denied: not by us",
        ),
        (
            [APPROVED, {"type": "InvalidRequest", "status": "True", "reason": "No", "message": "odd"}],
            "it was found invalid: odd",
        ),
        (
            [APPROVED, {"type": "Ready", "status": "False", "reason": "Failed", "message": "no key"}],
            "signing failed: no key",
        ),
        ([APPROVED, READY], "the signed certificate cannot be read: it is not a certificate in PEM"),
    ],
)
def test_a_request_that_is_refused(
    signing: Signing,
    opened: Opened,
    aside: ThreadPoolExecutor,
    conditions: list[dict[str, str]],
    sentence: str,
) -> None:
    """The sentence has the kind of object, the issuer, and the words of who refused; it is removed."""
    issuer, request, answered = _asked(signing, opened, aside)
    del issuer
    signing.answer(request, *conditions)
    with pytest.raises(IssuerError, match=f"{_called(signing)}: {sentence}") as exception_info:
        answered.result(SECONDS)
    assert request["metadata"]["name"] not in str(exception_info.value)
    assert not signing.listed()


def _asked(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, **more: Any
) -> tuple[CertManagerIssuer, dict[str, Any], Future[Pair]]:
    """Have an issuer of others asked, whose controller is the test; return the request."""
    known = more.pop("known", TrustBundle.of([new_ca("known").pem]))
    issuer = opened(signing.open("Widget.example.com/x", known=known, **more))
    answered = aside.submit(issued, issuer)
    return issuer, signing.waiting(), answered


def _called(signing: Signing) -> str:
    return f"CertificateRequest in namespace {signing.namespace} to Widget.example.com/x"


def test_what_a_request_says(signing: Signing, opened: Opened, aside: ThreadPoolExecutor) -> None:
    """Whose it is, what for, how long; and nothing of a key but what a CSR has."""
    issuer, request, answered = _asked(signing, opened, aside)
    metadata, spec = request["metadata"], request["spec"]
    assert metadata["name"].startswith("meshwright-service-1fd669f05426379b-")
    assert metadata["labels"] == {LABEL: OURS}
    assert metadata["annotations"]["meshwright.dev/identity"] == NAMES.uris[0]
    assert spec["issuerRef"] == {"group": "example.com", "kind": "Widget", "name": "x"}
    assert spec["usages"] == ["digital signature", "server auth", "client auth"]
    assert not spec.get("isCA")
    assert timedelta(minutes=59) < timedelta(seconds=int(spec["duration"][:-1])) <= HOUR
    assert base64.b64decode(spec["request"]).startswith(b"-----BEGIN CERTIFICATE REQUEST-----")
    assert "PRIVATE" not in str(request)
    issuer.close()
    with pytest.raises(IssuerError, match="the server was stopped before the answer arrived"):
        answered.result(SECONDS)
    _until_removed(signing)


def _until_removed(signing: Signing) -> None:
    wait_until(lambda: not signing.listed(), SECONDS)  # it tidies up, and nobody who asks waits for that


def test_a_request_that_was_made_unheard_is_removed(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is stopped before it hears what the API server has called it."""
    create = Api.create

    async def unheard(*words: Any) -> Any:
        await create(*words)
        await asyncio.Event().wait()

    monkeypatch.setattr(Api, "create", unheard)
    issuer, _, answered = _asked(signing, opened, aside)
    issuer.close()
    with pytest.raises(IssuerError, match="the server was stopped before the answer arrived"):
        answered.result(SECONDS)
    _until_removed(signing)


def test_a_request_that_nobody_answers(controllers: Service, signing: Signing, opened: Opened) -> None:
    """It ends in time, and says what lacked last."""
    issuer = opened(signing.open("Widget.example.com/x", seconds=0.5, known=TrustBundle.of([new_ca().pem])))
    controllers.kill()
    try:
        sentence = "was not signed within 0.5 s: it is not approved yet: cert-manager's approver"
        with pytest.raises(IssuerError, match=f"{_called(signing)} {sentence}"):
            issued(issuer)
    finally:
        controllers.again()
    assert not signing.listed()


def test_a_request_that_somebody_removes(signing: Signing, opened: Opened, aside: ThreadPoolExecutor) -> None:
    """Is over at once."""
    _, request, answered = _asked(signing, opened, aside)
    signing.ask("DELETE", f"{signing.requests}/{request['metadata']['name']}")
    with pytest.raises(IssuerError, match="was deleted before it was signed"):
        answered.result(SECONDS)


def _leaf(
    request: dict[str, Any],
    by: Ca,
    names: Names = NAMES,
    lasts: timedelta = HOUR,
    begins: timedelta = -HOUR,
) -> bytes:
    """Sign a request as one does who has his own ideas of names and lives."""
    csr = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    alternative = alternative_names(names)
    assert alternative is not None
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return (
        x509.CertificateBuilder()
        .subject_name(csr.subject).issuer_name(by.certificate.subject).public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() + begins).not_valid_after(now() + lasts)
        .add_extension(alternative, critical=False).add_extension(usages, critical=False)
        .sign(by.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "lasts", "shows", "sentence"),
    [
        (NAMES, timedelta(minutes=5), "root", ""),
        (
            Names("x", uris=("spiffe://mesh.example/ns/a/sa/b",)),
            HOUR,
            "root",
            "has names that differ from the request: spiffe",
        ),
        (NAMES, timedelta(hours=2), "root", "is valid until .*, longer than requested"),
        (NAMES, HOUR, "", ROOTLESS),
        (NAMES, HOUR, "intermediate", ROOTLESS),
        (
            NAMES,
            HOUR,
            "other",
            (
                "is signed by 'CN=root', but none of the given certificates has signed it; add "
                "the missing intermediate or root"
            ),
        ),
    ],
)
def test_what_an_issuer_of_others_signs(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor,
    names: Names, lasts: timedelta, shows: str, sentence: str,
) -> None:  # fmt: skip
    """One that shortens is understood; one that does otherwise, or shows no root, is said to."""
    root = new_ca()
    between = new_ca("intermediate", above=root)
    cas = {"": b"", "root": root.pem, "intermediate": between.pem, "other": new_ca("other").pem}
    _, request, answered = _asked(signing, opened, aside, known=TrustBundle.of([root.pem]))
    chain = _leaf(request, between, names, lasts) + between.pem + root.pem
    shown = {"ca": text(cas[shows])} if shows else {}
    signing.answer(request, APPROVED, READY, certificate=text(chain), **shown)
    if not sentence:
        assert answered.result(SECONDS).chain_pem.count(b"BEGIN") == 2  # without the root
        return
    with pytest.raises(IssuerError, match=sentence):
        answered.result(SECONDS)


def test_a_clock_that_is_ahead(signing: Signing, opened: Opened, aside: ThreadPoolExecutor) -> None:
    """By little: what is not taken by anybody yet is held until it has begun; by much: it is wrong."""
    known = new_ca()
    for begins, sentence in (
        (timedelta(seconds=2), ""),
        (timedelta(minutes=5), "one of the two clocks is wrong"),
    ):
        _, request, answered = _asked(signing, opened, aside)
        leaf = _leaf(request, known, begins=begins)
        signing.answer(request, APPROVED, READY, certificate=text(leaf), ca=text(known.pem))
        if sentence:
            with pytest.raises(IssuerError, match=sentence):
                answered.result(SECONDS)
        else:
            assert answered.result(SECONDS).leaf.not_before <= now()


def test_roots_that_are_given_are_the_only_ones(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """Whatever an issuer shows; the file may be another later."""
    root, other = new_ca(), new_ca("other")
    file = tmp_path / "roots.pem"
    file.write_bytes(root.pem)
    issuer, request, answered = _asked(signing, opened, aside, roots=file)
    assert issuer.trust_bundle() == root.pem
    signing.answer(request, APPROVED, READY, certificate=text(_leaf(request, other)), ca=text(other.pem))
    with pytest.raises(
        IssuerError, match="cannot be used: it is signed by 'CN=other', which is not one of the roots"
    ):
        answered.result(SECONDS)
    file.write_bytes(root.pem + other.pem)
    issuer.tend(now())
    answered = aside.submit(issued, issuer)
    request = signing.waiting()
    signing.answer(request, APPROVED, READY, certificate=text(_leaf(request, root)))
    answered.result(SECONDS)
    assert issuer.trust_bundle() == TrustBundle.of([root.pem, other.pem]).pem


def test_what_a_killed_server_has_left_is_removed(signing: Signing, opened: Opened) -> None:
    """By its own word, until when it waits; not what is waited for now, or is another's."""
    times = {"left": now() - HOUR, "fresh": now(), "others": now() - HOUR}
    spec = {"request": text(b"none"), "issuerRef": {"group": "example.com", "kind": "Widget", "name": "x"}}
    for name, until in times.items():
        labels = {LABEL: OURS if name != "others" else "another"}
        metadata = {"name": name, "namespace": signing.namespace, "labels": labels,
                    "annotations": {UNTIL: until.isoformat()}}  # fmt: skip
        made = {"apiVersion": GROUP, "kind": "CertificateRequest", "metadata": metadata, "spec": spec}
        assert signing.ask.create(made).status == 201
    opened(signing.open("Widget.example.com/x", known=TrustBundle.of([new_ca().pem])))
    assert sorted(item["metadata"]["name"] for item in signing.listed()) == ["fresh", "others"]


def test_a_cluster_that_refuses_requests_says_why(signing: Signing, opened: Opened, kubectl: Kubectl) -> None:
    """In the words of whose rule it is."""
    name = f"none-{signing.namespace}"
    of = {"apiGroups": ["cert-manager.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
          "resources": ["certificaterequests"]}  # fmt: skip
    rule = {"expression": "false", "message": "no certificates on Sundays"}
    here = {"name": "here", "expression": f"request.namespace == '{signing.namespace}'"}
    spec = {"matchConstraints": {"resourceRules": [of]}, "matchConditions": [here], "validations": [rule]}
    group = "admissionregistration.k8s.io/v1"
    kubectl.apply(
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
         "spec": {"policyName": name, "validationActions": ["Deny"]}},
    )  # fmt: skip
    issuer = opened(signing.open("Widget.example.com/x", seconds=0.2, known=TrustBundle.of([new_ca().pem])))
    try:
        with pytest.raises(IssuerError, match="no certificates on Sundays"):
            _until_refused(issuer)
    finally:
        kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def _until_refused(issuer: Issuer) -> None:
    """Ask until a policy is in force: until then nobody answers."""
    deadline = Deadline(SECONDS)
    while not deadline.has_passed():
        try:
            issued(issuer)
        except IssuerError as error:
            if "was not signed within" not in str(error):
                raise
