"""Tests of the selectors of the injection webhooks: which pods are reviewed, and each at most once."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from meshwright.kubernetes.admission.configuration import is_as
from meshwright.kubernetes.injection.configuration.configuration import read
from meshwright.kubernetes.injection.decision import SYSTEM_NAMESPACES, decide
from meshwright.kubernetes.injection.webhook.registration import configuration
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError

HOME = "meshwright-system"
INJECT, REVISION = "meshwright.dev/inject", "meshwright.dev/revision"
MONITORED, IGNORE = "openservicemesh.io/monitored-by", "openservicemesh.io/ignore"


def _fits(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Match a LabelSelector as the API does: a missing label is not in any list."""

    def fits(item: Mapping[str, Any]) -> bool:
        result, values = labels.get(item["key"]), item.get("values", ())
        of = {
            "In": result in values,
            "NotIn": result not in values,
            "Exists": result is not None,
            "DoesNotExist": result is None,
        }
        return of[item["operator"]]

    return all(map(fits, selector["matchExpressions"]))


def _asked(
    namespace: Mapping[str, str],
    pod: Mapping[str, str],
    *,
    name: str = "shop",
    revision: str = "",
    mesh: str = "",
) -> int:
    """Return the number of webhooks of a control plane that match a pod."""
    made = configuration({"url": "https://x"}, b"", HOME, revision=revision, mesh=mesh)
    labels = {**namespace, "kubernetes.io/metadata.name": name}
    return sum(
        _fits(webhook["namespaceSelector"], labels) and _fits(webhook["objectSelector"], pod)
        for webhook in made["webhooks"]
    )


@pytest.mark.parametrize(
    ("namespace", "pod", "default", "canary"),
    [
        ({}, {}, 0, 0),
        ({INJECT: "true"}, {}, 1, 0),
        ({INJECT: "true"}, {INJECT: "false"}, 0, 0),
        ({INJECT: "perhaps"}, {}, 0, 0),
        ({INJECT: "false"}, {INJECT: "true"}, 1, 0),
        ({}, {INJECT: "true"}, 1, 0),
        ({MONITORED: "osm"}, {}, 1, 0),
        ({MONITORED: "osm"}, {INJECT: "true"}, 1, 0),
        ({MONITORED: "osm", INJECT: "true"}, {}, 1, 0),
        ({MONITORED: "osm", INJECT: "false"}, {}, 0, 0),
        ({MONITORED: "osm", IGNORE: "true"}, {}, 0, 0),
        ({MONITORED: "other"}, {}, 0, 0),
        ({REVISION: "canary"}, {}, 0, 1),
        ({REVISION: "canary", INJECT: "true"}, {}, 0, 1),
        ({REVISION: "canary", INJECT: "false"}, {}, 0, 0),
        ({REVISION: "canary"}, {INJECT: "false"}, 0, 0),
        ({REVISION: "canary"}, {INJECT: "true"}, 0, 1),
        ({REVISION: "canary", INJECT: "false"}, {INJECT: "true"}, 0, 1),
        ({REVISION: "other"}, {}, 0, 0),
        ({INJECT: "true"}, {REVISION: "canary"}, 0, 1),
        ({REVISION: "other"}, {REVISION: "canary"}, 0, 1),
        ({}, {REVISION: "canary"}, 0, 1),
    ],
)
def test_labels_select_the_control_plane_that_reviews_a_pod(
    namespace: Any, pod: Any, default: int, canary: int
) -> None:
    """The default revision and a canary revision run side by side."""
    assert _asked(namespace, pod, mesh="osm") == default
    assert _asked(namespace, pod, mesh="osm", revision="canary") == canary


def test_unknown_mesh_name_accepts_the_registered_webhooks() -> None:
    """With a bad configuration at the start, the mesh's name is unknown.

    The existing registration then counts as right and stays.
    """
    client = {"url": "https://x"}
    known, unknown = (configuration(client, b"", HOME, mesh=item) for item in ("osm", None))
    assert is_as(known, unknown)
    assert len(known["webhooks"]) == len(unknown["webhooks"]) + 2


@pytest.mark.parametrize("name", sorted({*SYSTEM_NAMESPACES, HOME}))
def test_pods_of_system_namespaces_are_never_reviewed(name: str) -> None:
    """The cluster and the control plane must be able to start without the mesh, whatever their labels."""
    for revision in ("", "canary"):
        labels = {INJECT: "true", REVISION: revision} if revision else {INJECT: "true"}
        assert _asked(labels, {INJECT: "true"}, name=name, revision=revision) == 0


def test_no_pod_is_reviewed_twice_and_every_injected_pod_once() -> None:
    """For all combinations of labels at most one webhook matches, and exactly one for an injected pod."""
    config = read({"mesh": "osm", "policy": "disabled"}, "config.yaml")
    words, meshes = (None, "true", "false"), (None, "osm", "other")
    for inject, mesh, ignore, own in itertools.product(words, meshes, (None, "true"), words):
        answer = {INJECT: inject, MONITORED: mesh, IGNORE: ignore}
        namespace = {name: word for name, word in answer.items() if word is not None}
        pod = {} if own is None else {INJECT: own}
        asked = _asked(namespace, pod, mesh="osm")
        assert asked <= 1, (namespace, pod)
        try:
            wanted = decide(
                config,
                NamespaceObject(Namespace("shop"), tuple(namespace.items())),
                {"metadata": {"labels": pod}},
            )
        except CannotPatchError:
            continue
        assert not wanted.inject or asked == 1, (namespace, pod)
