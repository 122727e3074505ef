"""Tests of the admission webhook over HTTP: answers to reviews, and errors for malformed requests."""

import io
import json
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from meshwright.kubernetes.admission.judge import Judge
from meshwright.kubernetes.admission.server import LARGEST, application, patience
from tests.unit.kubernetes.admission.test_judge import BAD, TARGET, _now, _trial


@pytest.fixture
async def client() -> Any:
    """Return a client of the application, and the list of recorded results."""
    messages: list[str] = []
    app = application(Judge("kubernetes", "here", _now, _trial), messages.append)
    async with TestClient(TestServer(app)) as made:
        yield made, messages


def _review(document: object) -> dict[str, Any]:
    request = {"uid": "u1", "operation": "CREATE", "object": document, "dryRun": True}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def test_review_is_answered_with_its_uid(client: Any) -> None:
    """The response has the uid of the request and the judge's verdict, and its result is counted."""
    asking, details = client
    for document, allowed in ((TARGET, True), (BAD, False)):
        answer = await asking.post("/validate?timeout=5s", json=_review(document))
        response = (await answer.json())["response"]
        assert (answer.status, response["uid"], response["allowed"]) == (200, "u1", allowed)
    assert details == ["warned", "refused"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b"\xff", b"[]", json.dumps(_review(None)).encode()]
)
async def test_malformed_review_is_answered_with_400(client: Any, body: bytes) -> None:
    """The error is one line, and no review is judged."""
    asking, details = client
    answer = await asking.post("/validate", data=body)
    text = await answer.text()
    assert (answer.status, text.count("\n"), details) == (400, 1, [])


async def test_oversized_review_is_answered_with_413(client: Any) -> None:
    """No API server accepts an object of that size, so the body is not read."""
    asking, _ = client
    answer = await asking.post("/validate", data=io.BytesIO(b" " * (LARGEST + 1)))
    assert answer.status == 413


async def test_other_paths_and_methods_are_refused(client: Any) -> None:
    """Only POST on /validate exists."""
    asking, _ = client
    assert (await asking.get("/validate")).status == 405
    assert (await asking.get("/")).status == 404


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("5s", 4.0), ("3s", 2.0), ("30s", 4.0), ("1s", 0.5), ("", 4.0), ("x", 4.0), ("-1s", 4.0)],
)
def test_judging_time_is_shorter_than_the_timeout_of_the_request(told: str, seconds: float) -> None:
    """The answer needs some time on the network.

    The time is never longer than the registered timeout allows.
    """
    assert patience(told) == seconds
