"""Tests of the sidecar's container in an author's manifest, as an API server sends it to a webhook."""

from typing import Any

import pytest

from meshwright.sidecars.injection.author_container import OwnContainer

FILLED_IN: dict[str, Any] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
PROBE = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}


def _patch(**container: object) -> dict[str, object]:
    own: Any = {"name": "meshwright-sidecar", **container}
    return dict(OwnContainer("containers", 0, own).patch)


@pytest.mark.parametrize(
    ("written", "filled_in"),
    [
        ({"image": "auto"}, {"imagePullPolicy": "Always"}),
        (
            {"image": "auto", "readinessProbe": {"exec": {"command": ["true"]}, "timeoutSeconds": 4}},
            {
                "imagePullPolicy": "Always",
                "readinessProbe": {"exec": {"command": ["true"]}, **PROBE, "timeoutSeconds": 4},
            },
        ),
    ],
)
def test_defaults_of_the_api_server_are_not_the_authors_values(
    written: dict[str, Any], filled_in: dict[str, Any]
) -> None:
    """Kubernetes' defaults for a container reach a webhook as if the author had written them."""
    assert _patch(**written) == _patch(**{**written, **FILLED_IN, **filled_in})


@pytest.mark.parametrize(
    "said",
    [
        {"image": "auto", "imagePullPolicy": "Never"},
        {"image": "auto", "imagePullPolicy": "IfNotPresent"},
        {"image": "mine:1", "imagePullPolicy": "IfNotPresent"},
        {"image": "mine:1", "imagePullPolicy": "Always"},
        {"image": "auto", "terminationMessagePolicy": "FallbackToLogsOnError"},
    ],
)
def test_values_that_no_api_server_fills_in_are_the_authors(said: dict[str, Any]) -> None:
    """Examples are a policy other than the default of `auto`, and any policy of the author's own image."""
    assert _patch(**said) == {
        "name": "meshwright-sidecar",
        **{key: value for key, value in said.items() if value != "auto"},
    }
