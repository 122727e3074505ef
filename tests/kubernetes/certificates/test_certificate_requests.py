"""Tests of our CertificateRequests, with the test as the controller that answers them."""

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
from tests.unit.certs.issuers.example_cas import Ca
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
def test_refused_certificate_request_is_reported_and_deleted(
    signing: Signing,
    opened: Opened,
    aside: ThreadPoolExecutor,
    conditions: list[dict[str, str]],
    sentence: str,
) -> None:
    """The error names the kind of object, the issuer and the message of the refusal, and no random name."""
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
    """Request a certificate from a foreign issuer that the test controls; return the request."""
    known = more.pop("known", TrustBundle.from_pems([new_ca("known").pem]))
    issuer = opened(signing.open("Widget.example.com/x", known=known, **more))
    answered = aside.submit(issued, issuer)
    return issuer, signing.waiting(), answered


def _called(signing: Signing) -> str:
    return f"CertificateRequest in namespace {signing.namespace} to Widget.example.com/x"


def test_certificate_request_has_owner_purpose_and_duration_but_no_key(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor
) -> None:
    """The request contains a CSR with the identity, usages and duration.

    A stop of the server ends the wait and deletes the request.
    """
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
    wait_until(lambda: not signing.listed(), SECONDS)  # the deletion is not waited for by the caller


def test_request_whose_creation_was_not_confirmed_is_deleted(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is stopped before it gets the name of the created request, and finds it nevertheless."""
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


def test_unanswered_request_ends_in_time_with_the_missing_step(
    controllers: Service, signing: Signing, opened: Opened
) -> None:
    """The error names the missing approval, and the request is deleted."""
    issuer = opened(
        signing.open("Widget.example.com/x", seconds=0.5, known=TrustBundle.from_pems([new_ca().pem]))
    )
    controllers.kill()
    try:
        sentence = "was not signed within 0.5 s: it is not approved yet: cert-manager's approver"
        with pytest.raises(IssuerError, match=f"{_called(signing)} {sentence}"):
            issued(issuer)
    finally:
        controllers.again()
    assert not signing.listed()


def test_deleted_request_ends_at_once(signing: Signing, opened: Opened, aside: ThreadPoolExecutor) -> None:
    """A request that another client deletes ends the wait with an error."""
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
    """Sign a request like an issuer with its own names and lifetimes."""
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
                "is signed by 'CN=root', but the given certificates have not signed it; add "
                "the missing intermediate or root"
            ),
        ),
    ],
)
def test_certificate_of_a_foreign_issuer_is_validated(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor,
    names: Names, lasts: timedelta, shows: str, sentence: str,
) -> None:  # fmt: skip
    """A shorter lifetime is accepted. Other names, a longer lifetime or a missing root is an error."""
    root = new_ca()
    between = new_ca("intermediate", above=root)
    cas = {"": b"", "root": root.pem, "intermediate": between.pem, "other": new_ca("other").pem}
    _, request, answered = _asked(signing, opened, aside, known=TrustBundle.from_pems([root.pem]))
    chain = _leaf(request, between, names, lasts) + between.pem + root.pem
    shown = {"ca": text(cas[shows])} if shows else {}
    signing.answer(request, APPROVED, READY, certificate=text(chain), **shown)
    if not sentence:
        assert answered.result(SECONDS).chain_pem.count(b"BEGIN") == 2  # without the root
        return
    with pytest.raises(IssuerError, match=sentence):
        answered.result(SECONDS)


def test_issuer_clock_that_is_ahead_delays_or_rejects_the_certificate(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor
) -> None:
    """A certificate that begins in seconds is held until then; one that begins in minutes is an error."""
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


def test_configured_roots_are_the_only_trusted_ones(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """Roots that an issuer returns are not trusted in addition. A changed file is used later."""
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
    assert issuer.trust_bundle() == TrustBundle.from_pems([root.pem, other.pem]).pem


def test_requests_left_by_a_killed_server_are_deleted_after_their_deadline(
    signing: Signing, opened: Opened
) -> None:
    """Requests that may still be waited for, and those of other owners, are kept."""
    times = {"left": now() - HOUR, "fresh": now(), "others": now() - HOUR}
    spec = {"request": text(b"none"), "issuerRef": {"group": "example.com", "kind": "Widget", "name": "x"}}
    for name, until in times.items():
        labels = {LABEL: OURS if name != "others" else "another"}
        metadata = {"name": name, "namespace": signing.namespace, "labels": labels,
                    "annotations": {UNTIL: until.isoformat()}}  # fmt: skip
        made = {"apiVersion": GROUP, "kind": "CertificateRequest", "metadata": metadata, "spec": spec}
        assert signing.ask.create(made).status == 201
    opened(signing.open("Widget.example.com/x", known=TrustBundle.from_pems([new_ca().pem])))
    assert sorted(item["metadata"]["name"] for item in signing.listed()) == ["fresh", "others"]


def test_cluster_policy_that_refuses_requests_is_reported(
    signing: Signing, opened: Opened, kubectl: Kubectl
) -> None:
    """The error has the message of the ValidatingAdmissionPolicy."""
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
    issuer = opened(
        signing.open("Widget.example.com/x", seconds=0.2, known=TrustBundle.from_pems([new_ca().pem]))
    )
    try:
        with pytest.raises(IssuerError, match="no certificates on Sundays"):
            _until_refused(issuer)
    finally:
        kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def _until_refused(issuer: Issuer) -> None:
    """Request certificates until the policy is in force; earlier requests are not answered."""
    deadline = Deadline(SECONDS)
    while not deadline.has_passed():
        try:
            issued(issuer)
        except IssuerError as error:
            if "was not signed within" not in str(error):
                raise
