"""Tests of strategic merge patches, as in Kubernetes ("Update API Objects in Place")."""

from typing import Any

import pytest

from meshwright.sidecars.injection.merging import merged

BASE: dict[str, Any] = {
    "image": "a:1",
    "args": ["one", "two"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"containerPort": 80, "name": "web"}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 1}, "periodSeconds": 2},
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "secret": {"secretName": "s"}}],
}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        ({"image": "b:2"}, {"image": "b:2"}),
        ({"image": None}, {"image": ...}),
        ({"args": ["three"]}, {"args": ["three"]}),
        (
            {"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]},
            {
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "value": "3"},
                    {"name": "C", "value": "4"},
                ]
            },
        ),
        ({"env": [{"name": "A", "$patch": "delete"}]}, {"env": [{"name": "B", "value": "2"}]}),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]},
            {
                "env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "B", "value": "2"},
                ]
            },
        ),
        (
            {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"ports": [{"containerPort": 80, "name": "web", "protocol": "TCP"}]},
        ),
        (
            {"readinessProbe": {"exec": {"command": ["x"]}}},
            {"readinessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 2}},
        ),
        (
            {"readinessProbe": {"httpGet": {"path": "/ready"}}},
            {"readinessProbe": {"httpGet": {"path": "/ready", "port": 1}, "periodSeconds": 2}},
        ),
        (
            {"readinessProbe": {"$patch": "replace", "tcpSocket": {"port": 2}}},
            {"readinessProbe": {"tcpSocket": {"port": 2}}},
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            {
                "volumes": [
                    {"name": "v", "hostPath": {"path": "/x"}},
                    {"name": "w", "secret": {"secretName": "s"}},
                ]
            },
        ),
        ({"resources": {"limits": {"cpu": "1", "memory": None}}}, {"resources": {"limits": {"cpu": "1"}}}),
    ],
)
def test_patch_changes_only_the_fields_that_it_names(patch: dict[str, Any], changed: dict[str, Any]) -> None:
    """Neither the base nor the patch is modified."""
    expected = {**BASE, **changed}
    expected = {name: value for name, value in expected.items() if value is not ...}
    before = repr((BASE, patch))
    assert merged(BASE, patch) == expected
    assert repr((BASE, patch)) == before
