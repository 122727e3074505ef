"""Tests of the comparison of two injectors' pods, and of the patch in an injector's answer."""

from typing import Any

import pytest

from benchmarks.injection import facts
from benchmarks.peers.istiod.injection import patched

POD: dict[str, Any] = {
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {"containers": [{"name": "a", "livenessProbe": {"grpc": {"port": 1}}}]},
}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/spec/containers/0", "value": {"name": "b"}}, ["b", "a"]),
        ({"op": "add", "path": "/spec/containers/-", "value": {"name": "b"}}, ["a", "b"]),
        ({"op": "replace", "path": "/spec/containers/0", "value": {"name": "b"}}, ["b"]),
        ({"op": "remove", "path": "/spec/containers/0"}, []),
    ],
)
def test_json_patch_changes_lists_and_keeps_its_input(operation: Any, expected: list[str]) -> None:
    """The operations are those of RFC 6902."""
    result = patched(POD, [operation])
    assert [container["name"] for container in result["spec"]["containers"]] == expected
    assert POD["spec"]["containers"][0]["name"] == "a"


def test_json_patch_paths_may_have_escaped_characters() -> None:
    """The escapes are those of RFC 6901."""
    operations = [{"op": "add", "path": "/metadata/labels/a.b~1c~0d", "value": "x"}]
    result = patched(POD, [*operations, {"op": "remove", "path": "/metadata/labels/app"}])
    assert result["metadata"]["labels"] == {"a.b/c~d": "x"}


def test_facts_describe_the_sidecar_and_its_changes_only() -> None:
    """Fields of the original Pod are not included."""
    probe = {"httpGet": {"port": 15020}}
    spec = {
        "initContainers": [
            {"name": "rules", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
            {"name": "proxy", "securityContext": {"runAsUser": 1500, "seccompProfile": {}}},
        ],
        "containers": [{"name": "a", "image": "b", "livenessProbe": probe}],
        "volumes": [{"name": "run", "emptyDir": {}}],
    }
    result = facts(POD, {"metadata": POD["metadata"], "spec": spec}, ("proxy", "rules"))
    answer = {
        "sidecar": "initContainers",
        "sidecar's user": "its own",
        "init container's rights": "NET_ADMIN",
        "sidecar's rights": "none",
        "seccomp profile": "False",
        "probes that ask the sidecar": "a.livenessProbe",
        "author's containers otherwise changed": "image",
        "kinds of volumes added": "emptyDir",
        "labels added": "0",
    }
    assert {name: result[name] for name in answer} == answer
