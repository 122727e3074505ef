"""Tests of the API client's verbs: the requests, and the errors for every kind of failure."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from meshwright.kube import responses as answers
from meshwright.kube.api import Api
from meshwright.kube.connection.access import Access, Server, User
from meshwright.kube.connection.connection import Connection
from meshwright.kube.errors import ApiError, ApiUnreachable, KubeError, Nonsense, Reason
from meshwright.kube.resource import Raw, Resource
from tests.unit.kube.scripted_api import (
    SERVICES,
    Line,
    Part,
    ReceivedRequest,
    ScriptedServer,
    answering,
    api_at,
    api_of,
    listed,
    refusing,
    service,
)

SPLITS = Resource("split.smi-spec.io", "v1alpha4", "trafficsplits", "TrafficSplit")
BODY = {"metadata": {"name": "cart"}, "spec": {"a": 1}}

Act = Callable[[Api], Awaitable[Raw]]

CALLS: list[tuple[Act, str, str, dict[str, str], str, Any]] = [
    (lambda api: api.get(SPLITS, "shop", "cart"), "GET", "/cart", {}, "", None),
    (lambda api: api.get(SPLITS, "shop", "cart", subresource="status"), "GET", "/cart/status", {}, "", None),
    (lambda api: api.create(SPLITS, "shop", BODY), "POST", "", {}, "application/json", BODY),
    (
        lambda api: api.create(SPLITS, "shop", BODY, dry_run=True),
        "POST",
        "",
        {"dryRun": "All"},
        "application/json",
        BODY,
    ),
    (
        lambda api: api.apply(SPLITS, "shop", "cart", BODY, manager="m", subresource="status"),
        "PATCH",
        "/cart/status",
        {"fieldManager": "m", "force": "true"},
        "application/apply-patch+yaml",
        {"apiVersion": "split.smi-spec.io/v1alpha4", "kind": "TrafficSplit", **BODY},
    ),
    (lambda api: api.replace(SPLITS, "shop", "cart", BODY), "PUT", "/cart", {}, "application/json", BODY),
    (
        lambda api: api.patch(SPLITS, "shop", "cart", {"spec": None}),
        "PATCH",
        "/cart",
        {},
        "application/merge-patch+json",
        {"spec": None},
    ),
    (
        lambda api: api.patch(SPLITS, "shop", "cart", [{"op": "remove", "path": "/spec"}]),
        "PATCH",
        "/cart",
        {},
        "application/json-patch+json",
        [{"op": "remove", "path": "/spec"}],
    ),
    (lambda api: api.delete(SPLITS, "shop", "cart"), "DELETE", "/cart", {}, "", None),
]


@pytest.mark.parametrize(("act", "method", "path", "query", "content", "body"), CALLS)
async def test_each_verb_is_its_request_of_the_kubernetes_api(
    act: Act, method: str, path: str, query: dict[str, str], content: str, body: object
) -> None:
    """Method, path, query, content type and body are those of the API's documentation."""
    async with ScriptedServer(answering({"kind": "TrafficSplit", "ok": 1})) as played, api_of(played) as api:
        assert (await act(api))["ok"] == 1
    (asked,) = played.asked
    headers = dict(asked.headers)
    base = "/apis/split.smi-spec.io/v1alpha4/namespaces/shop/trafficsplits"
    assert (asked.method, asked.path, dict(asked.query)) == (method, base + path, query)
    assert headers.get("content-type", "") == content
    assert (json.loads(asked.body) if asked.body else None) == body
    assert (headers["user-agent"], headers["accept"]) == ("meshwright", "application/json")


async def test_all_pages_are_one_list() -> None:
    """The list follows `continue` with the same selector."""
    first = answering(listed(7, service("cart", 5), more="a b"))
    async with (
        ScriptedServer(first, answering(listed(7, service("cats", 6)))) as played,
        api_of(played) as api,
    ):
        result = await api.list(SERVICES, "shop", labels="a=b")
    assert [item["metadata"]["name"] for item in result["items"]] == ["cart", "cats"]
    assert result["metadata"] == {"resourceVersion": "7"}
    assert [dict(item.query) for item in played.asked] == [
        {"labelSelector": "a=b", "limit": "500"},
        {"labelSelector": "a=b", "limit": "500", "continue": "a b"},
    ]


async def test_list_that_repeats_a_page_is_an_error() -> None:
    """A server with an endless list must not be asked for ever."""
    page = answering(listed(7, service("cart", 5), more="a b"))
    async with ScriptedServer(*[page] * 5) as played, api_of(played) as api:
        with pytest.raises(Nonsense, match="the list of services continues with the same page again"):
            await api.list(SERVICES)
    assert len(played.asked) == 2


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (SERVICES, "/api/v1/namespaces/a%2Fb/services/x%3Ay/status"),
        (Resource("", "v1", "nodes", "Node", namespaced=False), "/api/v1/nodes/x%3Ay/status"),
    ],
)
def test_names_are_escaped_in_paths(resource: Resource, path: str) -> None:
    """Characters such as `/` in a name do not change the path.

    The path of a cluster-scoped kind has no namespace.
    """
    assert resource.path("a/b", "x:y", "status") == path


async def test_server_below_a_path_is_reached() -> None:
    """Managers of many clusters serve each cluster below its own path."""
    async with ScriptedServer(answering(service("cart", 5))) as played:
        access = Access(Server("x", f"{played.url}/k8s/clusters/c-1"), User())
        async with Api(Connection(lambda: access), agent="meshwright/1") as api:
            await api.get(SERVICES, "shop", "cart")
    assert played.asked[0].path == "/k8s/clusters/c-1/api/v1/namespaces/shop/services/cart"
    assert dict(played.asked[0].headers)["user-agent"] == "meshwright/1"


async def _close(_: ReceivedRequest, line: Line) -> None:
    line.cut()


async def _short(_: ReceivedRequest, line: Line) -> None:
    await line.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    line.cut()


async def _no_http(_: ReceivedRequest, line: Line) -> None:
    await line.raw(b"SSH-2.0-OpenSSH_9.2\r\n")


async def _html(_: ReceivedRequest, line: Line) -> None:
    await line.head(502, content="text/html")
    await line.chunk(b"<html>Bad Gateway</html>")
    await line.end()


FAILURES: list[tuple[Part, type[KubeError], Reason, str]] = [
    (_close, ApiUnreachable, Reason.UNREACHABLE, "cannot get services shop/cart at URL: "),
    (_short, ApiUnreachable, Reason.UNREACHABLE, "cannot get services shop/cart at URL: "),
    (_no_http, ApiUnreachable, Reason.UNREACHABLE, "cannot get services shop/cart at URL: "),
    (_html, ApiError, Reason.SERVER, "cannot get services shop/cart: X (502)"),
    (answering([]), Nonsense, Reason.NONSENSE, "the answer is not a JSON object: '[]'"),
    (answering({}, 302, "Location: http://elsewhere/"), Nonsense, Reason.NONSENSE,
     "cannot get services shop/cart: the server redirects to another address (302)"),
    (refusing(404, "NotFound", 'services "cart" not found'), ApiError, Reason.NOT_FOUND,
     'cannot get services shop/cart: services "cart" not found (404)'),
    (refusing(409, "Conflict", "x"), ApiError, Reason.CONFLICT, "cannot get services shop/cart: x (409)"),
    (answering({"kind": "Status", "code": "x", "message": 5}, 500), ApiError, Reason.SERVER,
     "cannot get services shop/cart: 5 (500)"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "kind", "reason", "said"), FAILURES)
async def test_every_failure_is_an_error_with_the_request(
    part: Part, kind: type[KubeError], reason: Reason, said: str
) -> None:
    """The error has its reason, and the message names verb and object."""
    async with ScriptedServer(part) as played, api_of(played) as api:
        with pytest.raises(KubeError) as caught:
            await api.get(SERVICES, "shop", "cart")
    assert (type(caught.value), caught.value.reason) == (kind, reason)
    assert str(caught.value).startswith(said.replace("URL", played.url))


async def test_oversized_answer_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server, or a proxy in its place, must not fill the memory of its client."""
    monkeypatch.setattr(answers, "LONGEST_ANSWER", 1024 * 1024)
    async with ScriptedServer(answering({"data": "x" * 1024 * 1024})) as played, api_of(played) as api:
        with pytest.raises(Nonsense) as caught:
            await api.get(SERVICES, "shop", "cart")
    assert caught.value.reason == Reason.TOO_LARGE
    assert str(caught.value) == "cannot get services shop/cart: the answer is larger than 1 MiB"


async def test_server_without_a_timely_answer_is_abandoned() -> None:
    """Neither a silent server nor one that trickles bytes holds a request longer than the limit."""

    async def silent(_: ReceivedRequest, line: Line) -> None:
        await line.hang()

    async def slow(_: ReceivedRequest, line: Line) -> None:
        await line.head()
        while True:
            await line.chunk(b" ")
            await asyncio.sleep(0.02)

    for part in (silent, slow):
        async with ScriptedServer(part) as played, api_at(Server("x", played.url), User(), answer=0.3) as api:
            with pytest.raises(ApiUnreachable, match="no answer in time") as caught:
                await api.get(SERVICES, "shop", "cart")
            assert caught.value.reason is Reason.TIMEOUT


async def test_error_has_the_retry_after_of_the_answer() -> None:
    """The caller can wait as long as the server requests."""
    busy = refusing(429, "TooManyRequests", "x", "Retry-After: 7")
    async with ScriptedServer(busy) as played, api_of(played) as api:
        with pytest.raises(ApiError) as caught:
            await api.get(SERVICES, "shop", "cart")
    assert caught.value.retry_after == 7


async def test_forbidden_subresource_is_named_as_in_rbac() -> None:
    """The name can be copied into a rule."""
    name = "trafficsplits.split.smi-spec.io"
    who = f'{name} "cart" is forbidden: User "u" cannot patch resource "trafficsplits/status"'
    async with ScriptedServer(refusing(403, "Forbidden", who)) as played, api_of(played) as api:
        with pytest.raises(ApiError) as caught:
            await api.apply(SPLITS, "shop", "cart", {}, manager="m", subresource="status")
    grants = "RBAC grants no `patch` on `trafficsplits/status.split.smi-spec.io` to u"
    assert str(caught.value) == f"may not patch {name} shop/cart/status: {grants}"
    assert caught.value.is_forbidden


async def test_request_goes_through_the_proxy_of_the_kubeconfig() -> None:
    """The proxy gets the request for the server's address."""
    async with ScriptedServer(answering(service("cart", 5))) as proxy:
        access = Access(Server("x", "http://10.1.2.3:8080", proxy=proxy.url), User())
        async with Api(Connection(lambda: access)) as api:
            await api.get(SERVICES, "shop", "cart")
    assert dict(proxy.asked[0].headers)["host"] == "10.1.2.3:8080"
