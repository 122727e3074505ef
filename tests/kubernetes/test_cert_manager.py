"""Service certificates from cert-manager's own controllers, on a real API server."""

import base64
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.bundle import TrustBundle
from certs.errors import IssuerError, StateError
from certs.issuers.authority import CertificateAuthority
from certs.issuers.cert_manager.issuer import CertManagerIssuer
from certs.issuers.cert_manager.requests import LABEL, OURS, UNTIL
from certs.issuers.contract import Issuer, KeyKind, Names, Usage
from certs.issuers.opening import CertManagerTold, open_issuer
from certs.issuers.reference import IssuerReference
from certs.issuers.succession import SETTLING
from certs.pair import Making, Pair, issue_pair
from certs.pair_files import PairFiles
from certs.profile import alternative_names
from certs.stored import Holder
from tests.kubernetes.accounts import Accounts
from tests.kubernetes.asking import Asking
from tests.kubernetes.granted import asked, granted
from tests.kubernetes.kubectl import Kubectl
from tests.kubernetes.signing import DOMAIN, GROUP, SECONDS, Signing, is_ready, self_signed, text
from tests.unit.certs.issuers.cas import Ca, ca
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.processes import Service
from tools.real_parts.signing import RESOURCES

HOUR: Final = timedelta(hours=1)
NAMES: Final = Names(
    "service-1fd669f05426379b",
    uris=("spiffe://mesh.example/ns/shop/sa/store",),
    dns_names=("store.shop", "store.shop.svc.cluster.local"),
)
GRANTS: Final = Path(__file__).parents[2] / "docs" / "kubernetes" / "cert-manager.yaml"


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def signing(cert_manager_kinds: None, shared_cluster: RunningCluster, namespace: str) -> Iterator[Signing]:
    """Return a namespace in which nobody signs unless the test has the controllers."""
    del cert_manager_kinds
    with Asking(shared_cluster) as ask:
        yield Signing(ask, shared_cluster.kubeconfig, namespace)


@pytest.fixture
def opened() -> Iterator[Callable[[CertManagerIssuer], CertManagerIssuer]]:
    """Return what closes issuers at the end of a test."""
    kept: list[CertManagerIssuer] = []

    def keep(made: CertManagerIssuer) -> CertManagerIssuer:
        kept.append(made)
        return made

    yield keep
    for each in kept:
        each.close()


Opened = Callable[[CertManagerIssuer], CertManagerIssuer]


@pytest.fixture
def aside() -> Iterator[ThreadPoolExecutor]:
    """Return a thread for who waits while the test goes on."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def _issued(issuer: Issuer, making: Making | None = None, names: Names = NAMES) -> Pair:
    return issue_pair(issuer, Usage.SERVICE, names, HOUR, _now(), making or Making())


def _root(name: str = "root", **more: Any) -> Ca:
    return ca(name, _now(), **more)


@pytest.mark.parametrize("kind", [KeyKind.ECDSA_P256, KeyKind.RSA_2048])
def test_an_issuer_signs_what_was_asked_for(
    controllers: Service, signing: Signing, opened: Opened, tmp_path: Path, kind: KeyKind
) -> None:
    """By an intermediate: its chain comes with it, its root is trusted; nothing is left of the request."""
    root = _root()
    signing.secret(_root("intermediate", above=root), root)
    issuer = opened(signing.open(signing.ca_issuer()))
    assert issuer.trust_bundle() == TrustBundle.of([root.pem]).pem
    pair = _issued(issuer, Making(kind))
    assert pair.leaf.names == NAMES
    assert pair.leaf.serves(Usage.SERVICE)
    assert abs(pair.leaf.not_after - _now() - HOUR) < timedelta(minutes=2)
    assert pair.chain_pem.count(b"BEGIN CERTIFICATE") == 2
    (usage,) = (
        each.value
        for each in x509.load_pem_x509_certificate(pair.chain_pem).extensions
        if isinstance(each.value, x509.KeyUsage)
    )
    assert usage.digital_signature
    assert not usage.key_cert_sign
    assert not signing.listed()
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("there is no openssl")
    for name, pem in (("leaf", pair.chain_pem), ("roots", issuer.trust_bundle())):
        (tmp_path / name).write_bytes(pem)
    chain = ["-untrusted", str(tmp_path / "leaf"), str(tmp_path / "leaf")]
    said = subprocess.run(
        [openssl, "verify", "-purpose", "sslserver", "-CAfile", str(tmp_path / "roots"), *chain],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said


def test_a_cluster_issuer_below_a_root_that_signed_itself(
    controllers: Service, signing: Signing, opened: Opened
) -> None:
    """cert-manager makes the root, too; requests for a ClusterIssuer are made where the settings say."""
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
        assert _issued(issuer).leaf.names == NAMES
        assert issuer.trust_bundle() == root.public_bytes(serialization.Encoding.PEM)
    finally:
        signing.ask("DELETE", f"/apis/{GROUP}/clusterissuers/{name}")


def test_nothing_outlives_the_ca_that_signs(controllers: Service, signing: Signing, opened: Opened) -> None:
    """cert-manager would have it so: it is asked again for less, and not the time after."""
    root = _root(days=0, lasting=timedelta(minutes=20))
    signing.secret(root)
    issuer = opened(signing.open(signing.ca_issuer()))
    for _ in range(2):
        assert _issued(issuer).leaf.not_after <= root.certificate.not_valid_after_utc


def test_a_ca_that_is_another_is_trusted_before_it_signs(
    controllers: Service, signing: Signing, tmp_path: Path
) -> None:
    """From the built-in CA to cert-manager's, to another CA there, and back: both are trusted each time."""
    state = tmp_path / "state"
    state.mkdir()
    own = CertificateAuthority.open(tmp_path / "own", DOMAIN, _now())
    roots = {name: TrustBundle.of([each]) for name, each in (("own", own.trust_bundle()),)}
    first, second = _root("first"), _root("second")
    roots |= {name: TrustBundle.of([each.pem]) for name, each in (("first", first), ("second", second))}

    def trusted(*names: str) -> bytes:
        return TrustBundle.of(roots[name].pem for name in names).pem

    def kept(issuer: Issuer, account: str) -> None:
        PairFiles(state).keep(Holder(f"services/shop/{account}"), _issued(issuer))

    built_in = open_issuer(None, own, state, _now())
    kept(built_in.issuer, "before")
    signing.secret(first)
    reference = IssuerReference.parse(signing.ca_issuer())
    told = CertManagerTold(reference, signing.namespace, SECONDS, kubeconfig=signing.kubeconfig)
    now_asked = open_issuer(told, own, state, _now())
    try:
        assert now_asked.issuer.trust_bundle() == trusted("own", "first")
        assert now_asked.issuer.signing_bundle() == trusted("own", "first")
        kept(now_asked.issuer, "after")
        signing.replace_secret(second)
        with pytest.raises(IssuerError, match="below another root, which nobody trusts yet: soon they will"):
            _until_other(now_asked.issuer)
        now_asked.tend(_now())
        assert now_asked.issuer.trust_bundle() == trusted("own", "first", "second")
        assert now_asked.issuer.settled() > _now() + SETTLING / 2
        kept(now_asked.issuer, "at-last")
    finally:
        now_asked.close()
    back = open_issuer(None, own, state, _now())
    assert back.issuer.trust_bundle() == trusted("own", "first", "second")
    assert _issued(back.issuer).leaf.names == NAMES


def _until_other(issuer: Issuer) -> None:
    """Have certificates signed until cert-manager has heard of its other CA."""
    limit = _now() + timedelta(seconds=SECONDS)
    while _now() < limit:
        _issued(issuer)


@pytest.mark.parametrize(
    ("issuer", "sentence"),
    [
        ("Issuer/nobody", r"cannot get issuers.cert-manager.io test-\d+/nobody: .*not found"),
        ("ClusterIssuer/nobody", "cannot get clusterissuers.cert-manager.io nobody: .*not found"),
        ("Issuer/itself", r"Issuer/itself in namespace test-\d+ signs each certificate by its own key"),
        ("Issuer/mesh", r"Issuer/mesh in namespace test-\d+ is not ready: .*secrets? \"ca\" not found"),
    ],
)
def test_issuers_that_cannot_sign(controllers: Service, signing: Signing, issuer: str, sentence: str) -> None:
    """Each is named, with what is wrong with it, before anything is asked of it."""
    signing.make("Issuer", "itself", spec={"selfSigned": {}})
    signing.make("Issuer", "mesh", spec={"ca": {"secretName": "ca"}})
    path = f"/apis/{GROUP}/namespaces/{signing.namespace}/issuers/mesh"
    signing.ask.until(path, lambda found: found.get("status", {}).get("conditions"))
    with pytest.raises(IssuerError, match=sentence):
        signing.open(issuer)
    assert not signing.listed()


def test_nobody_signs_below_an_unknown_root(signing: Signing, tmp_path: Path) -> None:
    """Files that hold none are errors of the setting."""
    empty = tmp_path / "empty"
    empty.write_text("")
    for file, sentence in (
        (tmp_path / "none", "cert_manager_roots .*none is missing"),
        (empty, "holds no root"),
    ):
        with pytest.raises(StateError, match=sentence):
            signing.open("Issuer/mesh", roots=file)


def test_who_may_not_and_where_nothing_is(signing: Signing, accounts: Accounts) -> None:
    """The sentence has the grant that lacks, and where it is found; or the namespace that is not there."""
    account = accounts.make("nobody", ())
    with pytest.raises(IssuerError, match="grants no `list` on `certificaterequests.cert-manager.io` to .*"
                                          r"\(docs/kubernetes/cert-manager.yaml grants it\)"):  # fmt: skip
        signing.open("Issuer/mesh", kubeconfig=account.kubeconfig)
    with pytest.raises(IssuerError, match=r"certificaterequests.cert-manager.io in namespace nowhere: .*404"):
        signing.open("Widget.example.com/x", namespace="nowhere")


def test_our_grants_are_enough_and_all_are_used(
    controllers: Service, signing: Signing, accounts: Accounts, opened: Opened, shared_cluster: RunningCluster
) -> None:
    """By the API server's audit log."""
    signing.secret(_root())
    reference = signing.ca_issuer()
    account = accounts.make("meshwright", ())
    documents = list(yaml.safe_load_all(GRANTS.read_text("utf-8")))
    for each in documents:
        _moved(each, signing.namespace)
    accounts.kubectl.apply(*documents)
    try:
        _until_granted(lambda: signing.open(reference, kubeconfig=account.kubeconfig).close())
        _issued(opened(signing.open(reference, kubeconfig=account.kubeconfig)))
        with pytest.raises(IssuerError, match="not found"):
            signing.open("ClusterIssuer/nobody", kubeconfig=account.kubeconfig)
        said = list(asked(shared_cluster.place.audit, account.user))
        used = [each.grant for each in said if each.is_allowed]
        unused = [each for each in granted(documents) if not any(map(each.covers, used))]
        assert not unused
    finally:
        for kind in ("clusterrolebinding", "clusterrole"):
            accounts.kubectl("delete", kind, f"meshwright-issuer-{signing.namespace}")


def _moved(document: dict[str, Any], namespace: str) -> None:
    """Have a manifest be for a test's namespace, where all of the cluster's have another name."""
    metadata = document["metadata"]
    if "namespace" in metadata:
        metadata["namespace"] = namespace
    else:
        metadata["name"] = f"{metadata['name']}-{namespace}"
        if "roleRef" in document:
            document["roleRef"]["name"] = metadata["name"]
    for each in document.get("subjects", ()):
        each["namespace"] = namespace


def _until_granted(does: Callable[[], None]) -> None:
    """Do something until it is permitted: an API server follows roles a moment later."""
    limit = _now() + timedelta(seconds=SECONDS)
    while True:
        try:
            does()
        except IssuerError as error:
            if "grants" not in str(error) or _now() > limit:
                raise
        else:
            return


APPROVED: Final = {"type": "Approved", "status": "True", "reason": "Test"}
READY: Final = {"type": "Ready", "status": "True", "reason": "Issued"}


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
        ([APPROVED, READY], "what was signed is not understood: it is not a certificate in PEM"),
    ],
)
def test_a_request_that_is_refused(
    signing: Signing,
    opened: Opened,
    aside: ThreadPoolExecutor,
    conditions: list[dict[str, str]],
    sentence: str,
) -> None:
    """The sentence has the object, the issuer, and the words of who refused; it is removed."""
    issuer, request, answered = _asked(signing, opened, aside)
    del issuer
    signing.answer(request, *conditions)
    with pytest.raises(IssuerError, match=f"{_called(request)}: {sentence}"):
        answered.result(SECONDS)
    assert not signing.listed()


def _asked(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, **more: Any
) -> tuple[CertManagerIssuer, dict[str, Any], Future[Pair]]:
    """Have an issuer of others asked, whose controller is the test; return the request."""
    known = more.pop("known", TrustBundle.of([_root("known").pem]))
    issuer = opened(signing.open("Widget.example.com/x", known=known, **more))
    answered = aside.submit(_issued, issuer)
    return issuer, signing.waiting(), answered


def _called(request: dict[str, Any]) -> str:
    metadata = request["metadata"]
    return f"CertificateRequest {metadata['namespace']}/{metadata['name']} to Widget.example.com/x"


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
    with pytest.raises(IssuerError, match="the server was stopped before there was an answer"):
        answered.result(SECONDS)
    assert not signing.listed()  # it has tidied up


def test_a_request_that_nobody_answers(
    controllers: Service, signing: Signing, opened: Opened, aside: ThreadPoolExecutor
) -> None:
    """It ends in time, and says how far it came: not approved, not taken up, or what it waits for."""
    pending = {"type": "Ready", "status": "False", "reason": "Pending", "message": "later"}
    controllers.kill()
    try:
        for conditions, sentence in (
            ([], "nobody has approved it: cert-manager's own approver"),
            ([APPROVED], "it was approved, and its issuer has said nothing yet"),
            ([APPROVED, pending], "later"),
        ):
            _, request, answered = _asked(signing, opened, aside, seconds=1)
            signing.answer(request, *conditions)
            with pytest.raises(
                IssuerError, match=rf"{_called(request)} was not signed within 1 s: {sentence}"
            ):
                answered.result(SECONDS)
            assert not signing.listed()
    finally:
        controllers.again()


def test_a_request_that_somebody_removes(signing: Signing, opened: Opened, aside: ThreadPoolExecutor) -> None:
    """Is over at once."""
    _, request, answered = _asked(signing, opened, aside)
    signing.ask("DELETE", f"{signing.requests}/{request['metadata']['name']}")
    with pytest.raises(IssuerError, match="was removed by somebody before it was signed"):
        answered.result(SECONDS)


def _leaf(request: dict[str, Any], by: Ca, names: Names = NAMES, lasts: timedelta = HOUR) -> bytes:
    """Sign a request as one does who has his own ideas of names and lives."""
    csr = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    alternative = alternative_names(names)
    assert alternative is not None
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return (
        x509.CertificateBuilder()
        .subject_name(csr.subject).issuer_name(by.certificate.subject).public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_now() - HOUR).not_valid_after(_now() + lasts)
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
            "has other names than asked: spiffe",
        ),
        (NAMES, timedelta(hours=2), "root", "is valid until .*, longer than asked"),
        (NAMES, HOUR, "", "shows no root with what it signs .*: give it as cert_manager_roots"),
        (NAMES, HOUR, "intermediate", "shows no root with what it signs"),
        (NAMES, HOUR, "other", "is signed by 'CN=root', and none of those that were given has signed it"),
    ],
)
def test_what_an_issuer_of_others_signs(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor,
    names: Names, lasts: timedelta, shows: str, sentence: str,
) -> None:  # fmt: skip
    """One that shortens is understood; one that does otherwise, or shows no root, is said to."""
    root = _root()
    between = _root("intermediate", above=root)
    cas = {"": b"", "root": root.pem, "intermediate": between.pem, "other": _root("other").pem}
    _, request, answered = _asked(signing, opened, aside, known=TrustBundle.of([root.pem]))
    chain = _leaf(request, between, names, lasts) + between.pem + root.pem
    shown = {"ca": text(cas[shows])} if shows else {}
    signing.answer(request, APPROVED, READY, certificate=text(chain), **shown)
    if not sentence:
        assert answered.result(SECONDS).chain_pem.count(b"BEGIN") == 2  # without the root
        return
    with pytest.raises(IssuerError, match=sentence):
        answered.result(SECONDS)


def test_roots_that_are_given_are_the_only_ones(
    signing: Signing, opened: Opened, aside: ThreadPoolExecutor, tmp_path: Path
) -> None:
    """Whatever an issuer shows; the file may be another later."""
    root, other = _root(), _root("other")
    file = tmp_path / "roots.pem"
    file.write_bytes(root.pem)
    issuer, request, answered = _asked(signing, opened, aside, roots=file)
    assert issuer.trust_bundle() == root.pem
    signing.answer(request, APPROVED, READY, certificate=text(_leaf(request, other)), ca=text(other.pem))
    with pytest.raises(
        IssuerError, match="cannot be used: it is signed by 'CN=other', which is none of the roots"
    ):
        answered.result(SECONDS)
    file.write_bytes(root.pem + other.pem)
    issuer.tend(_now())
    answered = aside.submit(_issued, issuer)
    request = signing.waiting()
    signing.answer(request, APPROVED, READY, certificate=text(_leaf(request, root)))
    answered.result(SECONDS)
    assert issuer.trust_bundle() == TrustBundle.of([root.pem, other.pem]).pem


def test_the_controllers_and_the_api_may_be_killed_meanwhile(
    controllers: Service, shared_cluster: RunningCluster, signing: Signing, opened: Opened,
    aside: ThreadPoolExecutor,
) -> None:  # fmt: skip
    """What was asked for is signed once they are there again."""
    signing.secret(_root())
    issuer = opened(signing.open(signing.ca_issuer()))
    controllers.kill()
    try:
        answered = aside.submit(_issued, issuer)
        signing.waiting()
        shared_cluster.api.kill()
        shared_cluster.api.again()
    finally:
        controllers.again()
    assert answered.result(SECONDS).leaf.names == NAMES


def test_what_a_killed_server_has_left_is_removed(signing: Signing, opened: Opened) -> None:
    """By its own word, until when it waits; not what is waited for now, or is another's."""
    times = {"left": _now() - HOUR, "fresh": _now(), "others": _now() - HOUR}
    spec = {"request": text(b"none"), "issuerRef": {"group": "example.com", "kind": "Widget", "name": "x"}}
    for name, until in times.items():
        labels = {LABEL: OURS if name != "others" else "another"}
        metadata = {"name": name, "namespace": signing.namespace, "labels": labels,
                    "annotations": {UNTIL: until.isoformat()}}  # fmt: skip
        made = {"apiVersion": GROUP, "kind": "CertificateRequest", "metadata": metadata, "spec": spec}
        assert signing.ask.create(made).status == 201
    opened(signing.open("Widget.example.com/x", known=TrustBundle.of([_root().pem])))
    assert sorted(each["metadata"]["name"] for each in signing.listed()) == ["fresh", "others"]


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
    issuer = opened(signing.open("Widget.example.com/x", seconds=0.2, known=TrustBundle.of([_root().pem])))
    try:
        with pytest.raises(IssuerError, match="no certificates on Sundays"):
            _until_refused(issuer)
    finally:
        kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)


def _until_refused(issuer: Issuer) -> None:
    """Ask until a policy is in force: until then nobody answers."""
    limit = _now() + timedelta(seconds=SECONDS)
    while _now() < limit:
        try:
            _issued(issuer)
        except IssuerError as error:
            if "was not signed within" not in str(error):
                raise
