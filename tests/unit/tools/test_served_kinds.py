"""Tests of mapping kubectl's names of objects to API paths."""

from typing import Any, cast

import pytest

from tests.kubernetes.tools.api_kinds import Kinds
from tests.kubernetes.tools.api_requests import Answer, Asking


def _resource(plural: str, kind: str, *short: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "singularResource": kind.lower(),
        "shortNames": list(short),
    }


_CORE = [_resource("pods", "Pod", "po"), _resource("namespaces", "Namespace", "ns", scope="Cluster")]
_SAID = {
    "/api": [{"metadata": {}, "versions": [{"version": "v1", "resources": _CORE}]}],
    "/apis": [
        {
            "metadata": {"name": "events.k8s.io"},
            "versions": [{"version": "v1", "resources": [_resource("events", "Event")]}],
        },
    ],
}


def _answer(method: str, path: str, accept: str) -> Answer:
    """Answer like the aggregated discovery of an API server (apidiscovery.k8s.io/v2)."""
    assert (method, "as=APIGroupDiscoveryList" in accept) == ("GET", True)
    return Answer(200, {"items": _SAID[path]}, ())


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("pod one", "/api/v1/namespaces/here/pods/one"),
        ("po/one", "/api/v1/namespaces/here/pods/one"),
        ("pods -l app=shop", "/api/v1/namespaces/here/pods?labelSelector=app%3Dshop"),
        ("pods -lapp=shop --namespace=there", "/api/v1/namespaces/there/pods?labelSelector=app%3Dshop"),
        ("pod one -n there --show-managed-fields", "/api/v1/namespaces/there/pods/one"),
        ("ns", "/api/v1/namespaces"),
        ("namespace here", "/api/v1/namespaces/here"),
        (
            "events.events.k8s.io --field-selector=reason=Mended",
            "/apis/events.k8s.io/v1/namespaces/here/events?fieldSelector=reason%3DMended",
        ),
    ],
)
def test_kubectl_arguments_are_mapped_to_api_paths(words: str, path: str) -> None:
    """Plural, singular and short names, groups and flags of kubectl are supported."""
    assert Kinds(cast("Asking", _answer)).asked(tuple(words.split()), "here") == path


def test_object_has_the_api_path_of_its_kind() -> None:
    """Objects with cluster scope have no namespace in their path."""
    kinds = Kinds(cast("Asking", _answer))
    assert kinds.of({"apiVersion": "v1", "kind": "Namespace"}).path("here", "a") == "/api/v1/namespaces/a"
    event = kinds.of({"apiVersion": "events.k8s.io/v1", "kind": "Event"})
    assert event.path("here") == "/apis/events.k8s.io/v1/namespaces/here/events"
