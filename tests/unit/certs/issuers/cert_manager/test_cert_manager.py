"""Tests of requests to cert-manager, and of its answers with any content."""

import asyncio
import base64
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from certs.contract import CertificateRequest, Names, Usage
from certs.errors import IssuerError
from certs.issuers.cert_manager.client import CertificateRequestClient
from certs.issuers.cert_manager.loop_thread import EventLoopThread
from certs.issuers.cert_manager.requests import UNTIL, is_left_behind, request
from certs.issuers.cert_manager.responses import (
    PendingRequest,
    RefusedRequest,
    SignedCertificate,
    ends,
    judged,
    unfit,
)
from certs.issuers.reference import IssuerReference
from certs.keys.bundle import TrustBundle
from certs.keys.proof_of_possession import SignedRequest
from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, KubeError
from meshwright.kube.resource import Raw
from tests.unit.certs.issuers.example_cas import Ca, ca

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECONDS = 60.0


def _condition(kind: str, status: str = "True", reason: str = "", message: str = "why") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _raw(*conditions: Any, **status: Any) -> dict[str, Any]:
    return {"status": {"conditions": list(conditions), **status}}


def _text(*cas: Ca) -> str:
    return base64.b64encode(b"".join(item.pem for item in cas)).decode()


@pytest.fixture(scope="module")
def cas() -> dict[str, Ca]:
    """Return a root, an intermediate below it, and a leaf certificate of the intermediate."""
    root = ca("root", NOW)
    between = ca("between", NOW, root, days=30)
    return {"root": root, "between": between, "leaf": ca("leaf", NOW, between, is_ca=False, days=1)}


def test_conditions_distinguish_pending_from_refused_requests() -> None:
    """A denial counts whatever other conditions exist. A pending request may still be signed."""
    ready = _condition("Ready", "False", "Pending")
    for conditions, expected in {
        (): PendingRequest,
        ("Approved",): PendingRequest,
        ("Approved", "ready"): PendingRequest,
        ("Denied",): RefusedRequest,
        ("Denied", "ready"): RefusedRequest,
        ("InvalidRequest", "Approved"): RefusedRequest,
    }.items():
        raw = _raw(*(ready if condition == "ready" else _condition(condition) for condition in conditions))
        assert isinstance(judged(raw), expected), conditions
    assert judged(_raw(_condition("Denied", "False"))) == PendingRequest()
    answer = judged(_raw(_condition("Approved")))
    assert isinstance(answer, PendingRequest)
    assert answer.why.startswith(
        "it is approved, but its issuer has not answered yet; check that a controller for "
        "this kind of issuer runs"
    )
    assert judged(_raw(_condition("Approved"), ready)) == PendingRequest("why")
    assert judged(_raw(_condition("Ready", "False", "Failed"))) == RefusedRequest("signing failed: why")
    assert judged(_raw(_condition("Ready", "False", "Denied"))) == RefusedRequest("it was denied: why")


def test_chain_excludes_the_root_and_has_each_certificate_once(cas: dict[str, Ca]) -> None:
    """An issuer may report its highest known CA in place of a root; this CA becomes part of the chain."""
    leaf, between, root = cas["leaf"], cas["between"], cas["root"]
    ready = _condition("Ready")
    for certificate, shown in (
        ((leaf, between, root), (root,)),
        ((leaf, between), (between, root)),
        ((leaf,), (between, root)),
    ):
        result = judged(_raw(ready, certificate=_text(*certificate), ca=_text(*shown)))
        assert isinstance(result, SignedCertificate)
        assert result.chain_pem == leaf.pem + between.pem
        assert result.roots == TrustBundle.from_pems([root.pem])
        assert ends(result, result.roots, NOW) == between.certificate.not_valid_after_utc
    result = judged(_raw(ready, certificate=_text(leaf), ca=_text(between)))
    assert isinstance(result, SignedCertificate)
    assert (result.chain_pem, result.roots.fingerprints) == (leaf.pem + between.pem, ())


def test_chain_with_an_expired_or_unknown_root_is_refused(cas: dict[str, Ca]) -> None:
    """Of two roots with the same key, the end of the later one counts."""
    root = cas["root"]
    leaf = ca("leaf", NOW, root, is_ca=False, days=1)
    signed = SignedCertificate((leaf.certificate,), TrustBundle.from_pems([root.pem]))
    later = ca("root", NOW, days=900, key=root.key)
    both = TrustBundle.from_pems([root.pem, later.pem])
    assert ends(signed, both, NOW + timedelta(days=500)) == later.certificate.not_valid_after_utc
    with pytest.raises(ValueError, match=r"'CN=root' .*(expired|ended|valid)"):
        ends(signed, signed.roots, NOW + timedelta(days=500))
    with pytest.raises(ValueError, match="it is signed by 'CN=root', which is not one of the roots"):
        ends(signed, TrustBundle.from_pems([ca("other", NOW).pem]), NOW)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["Ready", "True"]),
    lambda search_strategy: (
        st.lists(search_strategy, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["status", "conditions", "type", "reason", "spec", "metadata", "annotations", UNTIL]
            ),
            search_strategy,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON, _JSON, _JSON)
def test_object_with_any_content_is_pending_or_refused(conditions: Any, certificate: Any, whole: Any) -> None:
    """Arbitrary JSON in the object never raises another error."""
    for raw in (
        {"status": {"conditions": conditions, "certificate": certificate}},
        _raw(_condition("Ready"), certificate=certificate, ca=conditions),
        whole if isinstance(whole, dict) else {},
    ):
        assert isinstance(judged(raw), RefusedRequest | PendingRequest)
        assert isinstance(unfit(raw), str)
        assert is_left_behind(raw, NOW) is False


def test_request_is_left_behind_only_after_the_time_in_its_annotation() -> None:
    """Five minutes are added, because clocks may differ."""

    def at(until: str) -> bool:
        return is_left_behind({"metadata": {"annotations": {UNTIL: until}}}, NOW)

    assert at((NOW - HOUR).isoformat())
    assert not at((NOW - timedelta(minutes=4)).isoformat())
    assert not at((NOW - HOUR).replace(tzinfo=None).isoformat())
    assert not at("yesterday")


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage.SERVICE, ["digital signature", "server auth", "client auth"]),
        (Usage.PROXY, ["digital signature", "client auth"]),
        (Usage.SERVER, ["digital signature", "server auth"]),
    ],
)
def test_request_has_the_key_usages_of_its_certificate(usage: Usage, words: list[str]) -> None:
    """A request without a URI has only the annotation of its end."""
    wanted = CertificateRequest(usage, Names("x"), NOW, NOW + HOUR, SignedRequest(b"csr"))
    made = request(wanted, IssuerReference("Issuer", "mesh"), timedelta(milliseconds=5), NOW)
    assert made["spec"]["usages"] == words
    assert made["spec"]["duration"] == "1s"
    assert list(made["metadata"]["annotations"]) == [UNTIL]


class _Api(Api):
    """An API that gives the same answer to each creation and list."""

    def __init__(self, said: KubeError | dict[str, Any]) -> None:
        self._said = said

    async def create(self, *_: Any, **__: Any) -> Raw:
        """Return or raise the answer."""
        if isinstance(self._said, KubeError):
            raise self._said
        return self._said

    async def list(self, *_: Any, **__: Any) -> Raw:
        """Return the answer as a list."""
        return {"items": [await self.create()]}


def _refusal(status: int, reason: str, said: str) -> ApiError:
    what, resource = (
        "certificaterequests.cert-manager.io in namespace here",
        "certificaterequests.cert-manager.io",
    )
    return ApiError(status, reason, said, verb="create", resource=resource, object_text=what, named=False)


_DENIED = 'certificaterequests.cert-manager.io is forbidden: User "u" cannot create resource'


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            _refusal(404, "NotFound", "the server could not find the requested resource"),
            (
                "does not serve .*: the CustomResourceDefinitions of cert-manager are not "
                "installed in this cluster"
            ),
        ),
        (
            _refusal(403, "Forbidden", _DENIED),
            r"grants no `create` .* to u \(docs/.*cert-manager.yaml grants it\)",
        ),
        (
            _refusal(403, "Forbidden", 'admission webhook "w" denied the request: no'),
            "denied the request: no$",
        ),
        ({"metadata": {"name": ""}}, "has no name"),
        ({"metadata": {"annotations": {UNTIL: "2020-01-01T00:00:00+00:00"}}}, "has no name"),
    ],
)
async def test_refusal_of_the_api_server_is_reported_with_its_remedy(said: Any, sentence: str) -> None:
    """An object without a name is an error, because a deletion without a name would delete all objects."""
    asking = CertificateRequestClient(_Api(said), IssuerReference("Widget", "x", "example.com"), "here", 1)
    with pytest.raises(IssuerError, match=sentence):
        await asking.signed({})
    if isinstance(said, dict) and said["metadata"].get("annotations"):
        with pytest.raises(IssuerError, match=sentence):
            await asking.look(NOW)


class _Denying(Api):
    """An API at which every request is denied, each with another name."""

    def __init__(self) -> None:
        self.there: list[str] = []
        self._count = 0

    async def create(self, *_: Any, **__: Any) -> Raw:
        """Create a request."""
        self._count += 1
        self.there.append(f"request-{self._count}")
        return {"metadata": {"name": self.there[-1]}, **_raw(_condition("Denied"))}

    async def delete(self, *told: Any, **__: Any) -> Raw:
        """Delete a request."""
        self.there.remove(told[-1])
        return {}


async def test_same_refusal_has_the_same_message_each_time() -> None:
    """A different message would be another problem, with a log line and an Event for each attempt."""
    api = _Denying()
    asking = CertificateRequestClient(api, IssuerReference("Issuer", "mesh"), "here", SECONDS)
    answer = set[str]()
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(IssuerError) as refused:
                await asking.signed({})
            answer.add(str(refused.value))
    assert answer == {"CertificateRequest in namespace here to Issuer/mesh: it was denied: why"}
    assert [log["request"] for log in logs] == ["here/request-1", "here/request-2"]
    assert not api.there


@contextlib.asynccontextmanager
async def _noted(noted: list[str]) -> AsyncIterator[None]:
    noted.append("open")
    yield
    noted.append("closed")


@pytest.fixture
def noted() -> list[str]:
    """Return a list for the events of the context in which work is done."""
    return []


@pytest.fixture
def beside(noted: list[str]) -> Iterator[EventLoopThread]:
    """Return an event loop in another thread."""
    made = EventLoopThread("test", _noted(noted))
    yield made
    made.close()
    assert noted == ["open", "closed"]


async def _failing() -> None:
    raise IssuerError("no")


def test_work_runs_in_the_loop_thread_and_its_error_is_raised_to_the_caller(beside: EventLoopThread) -> None:
    """The caller needs no event loop of its own."""

    async def named() -> str:
        return threading.current_thread().name

    assert beside.do(named) == "test"
    with pytest.raises(IssuerError, match="no"):
        beside.do(_failing)


def test_waiting_caller_gets_an_error_when_the_loop_thread_is_closed(
    beside: EventLoopThread, noted: list[str]
) -> None:
    """Work in progress is cleaned up first, and later work is not begun."""
    begun = threading.Event()

    async def waits() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            noted.append("tidied")

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(beside.do, waits)
        assert begun.wait(SECONDS)
        beside.close()
        with pytest.raises(IssuerError, match="the server was stopped before the answer arrived"):
            asked.result(SECONDS)
    assert noted == ["open", "tidied", "closed"]
    noted.remove("tidied")
    with pytest.raises(IssuerError, match="the server is stopping"):
        beside.do(_failing)
