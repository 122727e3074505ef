"""Tests of Envoy's command lines, by whole values."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from meshwright.agent.envoy.command import EnvoyOptions, environment, serve, validate
from meshwright.mesh.identity import ProxyName

BOOTSTRAP, BASE_ID = Path("/run/bootstrap.json"), Path("/run/base-id")


def test_first_epoch_chooses_a_base_id_and_the_next_one_gets_it() -> None:
    """All epochs of a proxy share a base ID; Envoy chooses one that is free on the host."""
    options = EnvoyOptions("envoy", drain_seconds=2, parent_shutdown_seconds=3)
    common = ["envoy", "--config-path", "/run/bootstrap.json", "--log-level", "warning"]
    common += ["--drain-time-s", "2", "--drain-strategy", "immediate", "--parent-shutdown-time-s", "3"]
    first = ["--restart-epoch", "0", "--use-dynamic-base-id", "--base-id-path", "/run/base-id"]
    assert serve(options, BOOTSTRAP, 0, None, BASE_ID) == [*common, *first]
    assert serve(options, BOOTSTRAP, 1, 7, BASE_ID) == [*common, "--restart-epoch", "1", "--base-id", "7"]


def test_command_without_hot_restart_has_none_of_its_options() -> None:
    """There are no epochs and base IDs. A parent's shutdown time before the end of draining is accepted."""
    options = EnvoyOptions("envoy", 2, "info", 60, 5, hot_restart=False, extra=("--x",))
    assert serve(options, BOOTSTRAP, 0, None, BASE_ID) == [
        *("envoy", "--config-path", "/run/bootstrap.json", "--log-level", "info"),
        *("--drain-time-s", "60", "--drain-strategy", "immediate"),
        *("--concurrency", "2", "--disable-hot-restart", "--x"),
    ]


def test_validation_does_not_touch_a_running_envoy() -> None:
    """Validation disables hot restart, so that it binds none of its sockets."""
    assert validate(EnvoyOptions("envoy"), BOOTSTRAP) == [
        *("envoy", "--mode", "validate", "--disable-hot-restart"),
        *("--config-path", "/run/bootstrap.json", "--log-level", "warning"),
    ]


def test_parent_shutdown_during_draining_is_refused() -> None:
    """The parent's shutdown time must be later than the drain time."""
    with pytest.raises(ValueError, match="must be later than its drain time of 60 s"):
        EnvoyOptions("envoy", drain_seconds=60, parent_shutdown_seconds=60)


NAME = ProxyName.parse("d7a1.shop.books")
KNOWN = "service.name=shop.books,service.instance.id=d7a1"


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ({}, KNOWN),
        ({"OTEL_RESOURCE_ATTRIBUTES": ""}, KNOWN),
        ({"OTEL_RESOURCE_ATTRIBUTES": " , "}, KNOWN),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=prod,"},
            f"{KNOWN},deployment.environment=prod",
        ),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=web"}, f"{KNOWN},service.name=web"),
        ({"OTEL_SERVICE_NAME": "web"}, f"{KNOWN},service.name=web"),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=front", "OTEL_SERVICE_NAME": "web"},
            f"{KNOWN},a=b,service.name=front,service.name=web",
        ),
    ],
)
def test_spans_are_named_by_the_proxy_unless_the_environment_says_more(
    own: Mapping[str, str], told: str
) -> None:
    """The proxy's names come first, because the last attribute of a name counts.

    The environment's attributes and then OTEL_SERVICE_NAME follow.
    """
    result = environment({"HOME": "/", **own}, NAME)
    assert result == {"HOME": "/", **own, "OTEL_RESOURCE_ATTRIBUTES": told}
