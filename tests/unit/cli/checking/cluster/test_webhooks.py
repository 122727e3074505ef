"""Tests of the webhooks that `check --kubernetes` uses, with several control planes in a cluster."""

from typing import Any

import pytest

from meshwright.cli.checking.cluster.client import ClusterClient
from meshwright.cli.checking.cluster.webhooks import Webhooks
from meshwright.kube.builtin import VALIDATING
from meshwright.kubernetes.admission.configuration import configuration
from meshwright.kubernetes.admission.place import Place
from meshwright.providers.kubernetes.scope import Scope
from tests.unit.kube.scripted_api import Line, ReceivedRequest, ScriptedServer, api_of

PLACE = Place.parse("a/b")


def _made(home: str, revision: str = "") -> dict[str, Any]:
    return dict(configuration(PLACE, b"", home=home, revision=revision))


def _empty(name: str, **labels: str) -> dict[str, Any]:
    """Return a webhook configuration from a chart that no control plane has filled in yet."""
    return {"metadata": {"name": name, "labels": {"app.kubernetes.io/name": "meshwright", **labels}}}


CANARY = _empty("meshwright-canary", **{"meshwright.dev/revision": "canary"})


@pytest.mark.parametrize(
    ("there", "home", "expected"),
    [
        ([_made("one"), _made("two", "canary")], "one", ("meshwright", "")),
        ([_made("one"), _made("two", "canary")], "two", ("meshwright-canary", "canary")),
        ([_made("one"), _made("two", "canary")], "three", (None, "")),
        ([_empty("meshwright"), _made("two", "canary")], "one", ("meshwright", "")),
        ([_made("one"), CANARY], "two", ("meshwright-canary", "canary")),
        ([_empty("meshwright-else"), _empty("quota")], "one", (None, "")),
        ([], "one", (None, "")),
    ],
)
async def test_webhook_of_the_given_control_plane_is_found(
    there: list[dict[str, Any]], home: str, expected: tuple[str | None, str]
) -> None:
    """The webhook of the given namespace is used.

    One that is not filled in yet belongs to the control plane without a webhook.
    """

    async def play(asked: ReceivedRequest, line: Line) -> None:
        await line.answer(
            {"kind": "List", "metadata": {}, "items": there if "validating" in asked.path else []}
        )

    async with ScriptedServer(play) as server, api_of(server) as api:
        webhooks = Webhooks(ClusterClient(api), home, ())
        result = await webhooks.ours(VALIDATING)
        assert (None if result is None else result["metadata"]["name"], await webhooks.revision()) == expected


@pytest.mark.parametrize(
    ("scope", "outside"),
    [
        (Scope.from_settings(), ["ignored"]),
        (Scope.from_settings(labels="openservicemesh.io/monitored-by=osm"), ["new", "ignored"]),
        (Scope.from_settings(("new",)), ["old", "ignored"]),
    ],
)
async def test_namespaces_outside_the_policy_webhook_s_selector_are_found(
    scope: Scope, outside: list[str]
) -> None:
    """The webhook's selector has the namespaces of the settings.

    A namespace outside it has Pods that the control plane does not know.
    """
    labels = {
        "old": {"openservicemesh.io/monitored-by": "osm"},
        "new": {"meshwright.dev/inject": "true"},
        "ignored": {"openservicemesh.io/monitored-by": "osm", "openservicemesh.io/ignore": ""},
    }
    namespaces = [
        {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name, **label}}}
        for name, label in labels.items()
    ]
    made = dict(configuration(PLACE, b"", scope.expressions(), home="one"))

    async def play(asked: ReceivedRequest, line: Line) -> None:
        items = namespaces if "namespaces" in asked.path else [made]
        await line.answer({"kind": "List", "metadata": {}, "items": items})

    async with ScriptedServer(play) as server, api_of(server) as api:
        assert await Webhooks(ClusterClient(api), "one", ()).outside(labels) == outside
        assert await Webhooks(ClusterClient(api), "two", ()).outside(labels) == ()
