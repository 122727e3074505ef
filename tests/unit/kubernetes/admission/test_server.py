"""The webhook over HTTP: answers in the API server's words, and one sentence for what is no question."""

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
    """Return a client of the application, and what was told of its answers."""
    told: list[str] = []
    app = application(Judge("kubernetes", "here", _now, _trial), told.append)
    async with TestClient(TestServer(app)) as made:
        yield made, told


def _review(document: object) -> dict[str, Any]:
    request = {"uid": "u1", "operation": "CREATE", "object": document, "dryRun": True}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


async def test_a_review_is_answered(client: Any) -> None:
    """With its own uid."""
    asking, told = client
    for document, allowed in ((TARGET, True), (BAD, False)):
        answer = await asking.post("/validate?timeout=5s", json=_review(document))
        response = (await answer.json())["response"]
        assert (answer.status, response["uid"], response["allowed"]) == (200, "u1", allowed)
    assert told == ["warned", "refused"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b"\xff", b"[]", json.dumps(_review(None)).encode()]
)
async def test_what_is_no_review_is_400(client: Any, body: bytes) -> None:
    """In one sentence, and nothing is judged."""
    asking, told = client
    answer = await asking.post("/validate", data=body)
    text = await answer.text()
    assert (answer.status, text.count("\n"), told) == (400, 1, [])


async def test_a_review_that_is_too_large_is_not_read(client: Any) -> None:
    """An API server takes no such object."""
    asking, _ = client
    answer = await asking.post("/validate", data=io.BytesIO(b" " * (LARGEST + 1)))
    assert answer.status == 413


async def test_nothing_else_is_there(client: Any) -> None:
    """One path, one method."""
    asking, _ = client
    assert (await asking.get("/validate")).status == 405
    assert (await asking.get("/")).status == 404


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("5s", 4.0), ("3s", 2.0), ("30s", 4.0), ("1s", 0.5), ("", 4.0), ("x", 4.0), ("-1s", 4.0)],
)
def test_some_of_the_time_is_left_for_the_way(told: str, seconds: float) -> None:
    """Never more than what is asked for in the configuration."""
    assert patience(told) == seconds
