"""The sidecar's container in an author's own manifest, as an API server hands it to a webhook."""

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
def test_what_an_api_server_fills_in_is_not_the_authors_word(
    written: dict[str, Any], filled_in: dict[str, Any]
) -> None:
    """Kubernetes' defaults for a container reach a webhook as if its author had written them."""
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
def test_what_no_api_server_fills_in_is_the_authors_word(said: dict[str, Any]) -> None:
    """A policy that is not the default of `auto`, and any policy of an image of the author's own."""
    assert _patch(**said) == {
        "name": "meshwright-sidecar",
        **{key: value for key, value in said.items() if value != "auto"},
    }
