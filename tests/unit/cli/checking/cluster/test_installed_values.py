"""Tests that the settings of an installation give back the values that decide about its objects."""

import json
from typing import Any

import pytest

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults, manifests
from meshwright.cli.checking.cluster.installed_values import values_of
from meshwright.cli.checking.judgements.permissions import granted
from meshwright.controller.settings.config_file import only_in
from meshwright.kubernetes.injection.configuration.configuration import Identity
from tests.tools import libyaml

HOME = "mesh"


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chart's manifests for values that are not the defaults."""
    return [libyaml.load(text) for text in manifests(merged(defaults(), values), HOME)]


def settings_in(objects: list[dict[str, Any]]) -> dict[str, object]:
    """Return the server's settings as the ConfigMap of an installation has them."""
    (config,) = (
        item["data"]["config.yaml"]
        for item in objects
        if (item["kind"], item["metadata"]["name"]) == ("ConfigMap", "meshwright")
    )
    settings = only_in(config, "the settings", as_text=True)
    assert isinstance(settings, dict)
    return settings


@pytest.mark.parametrize(
    ("values", "identity"),
    [
        ({}, Identity.TOKEN),
        ({"store": "directory"}, Identity.TOKEN),
        ({"store": "directory", "revision": "next"}, Identity.TOKEN),
        ({"injection": {"enabled": False}}, Identity.TOKEN),
        ({"injection": {"enabled": False}, "webhook": {"enabled": False}}, Identity.TOKEN),
        ({"injection": {"config": {"identity": "secret"}}}, Identity.SECRET),
        ({"settings": {"roots_config_map": "mine"}}, Identity.TOKEN),
        ({"certManager": {"enabled": True, "issuer": "ClusterIssuer/mesh"}}, Identity.TOKEN),
        ({"certManager": {"enabled": True, "issuer": "Issuer/mesh", "namespace": "pki"}}, Identity.TOKEN),
        ({"settings": {"injection": "yes"}, "resources": {}}, Identity.TOKEN),
    ],
    ids=json.dumps,
)
def test_settings_of_an_installation_give_back_its_permissions_and_kinds(
    values: dict[str, Any], identity: Identity
) -> None:
    """Permissions and kinds are equal to those of the values that the installation was made with."""
    installed = rendered(values)
    again = rendered(dict(values_of(settings_in(installed), identity)))
    assert granted(again) == granted(installed)
    assert {item["kind"] for item in again} == {item["kind"] for item in installed}


def test_settings_without_a_store_are_those_of_one_server() -> None:
    """Charts from before the value `store` installed one server with a directory, and no such setting."""
    settings = settings_in(rendered({}))
    del settings["store"]
    kinds = {item["kind"] for item in rendered(dict(values_of(settings, Identity.TOKEN)))}
    assert "StatefulSet" in kinds
    assert "Deployment" not in kinds
