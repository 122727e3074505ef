"""Tests of the settings that give the place of the injection configuration."""

import pytest

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import load
from meshwright.kubernetes.injection.configuration.place import ConfigMapKey
from meshwright.mesh.names import Namespace

TOLD = {"state": "s", "kubernetes": True, "webhook_address": "127.0.0.1:1", "webhook_reached_at": "a/b"}


def test_config_map_is_named_by_namespace_name_and_optional_key() -> None:
    """The default key is `config.yaml`."""
    assert ConfigMapKey.parse("mesh/injection") == ConfigMapKey(Namespace("mesh"), "injection", "config.yaml")
    settings = load({**TOLD, "injection": True, "injection_config_map": "mesh/in.jection/a.yaml"})
    assert str(settings.injection_config_map) == "mesh/in.jection/a.yaml"
    assert load({**TOLD, "injection": True, "injection_config_map": ""}).injection_config_map is None


@pytest.mark.parametrize(
    "text", ["injection", "mesh/", "/injection", "mesh/in jection", "a/b/", "a/b/c/d", "A/b"]
)
def test_malformed_config_map_name_is_refused_with_an_example(text: str) -> None:
    """Every setting's error has an example of a valid value."""
    with pytest.raises(
        SettingsError, match=r"NAMESPACE/NAME/KEY, for example meshwright-system/meshwright-injection"
    ):
        load({**TOLD, "injection": True, "injection_config_map": text})


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            {"injection_config_map": "a/b"},
            ("injection_config_map requires injection: set injection too, or remove injection_config_map"),
        ),
        (
            {"injection": True, "injection_config_map": "a/b", "injection_config": "c"},
            "injection_config and injection_config_map exclude each other: set one of them",
        ),
    ],
)
def test_config_map_needs_injection_and_excludes_a_file(told: dict[str, object], sentence: str) -> None:
    """A setting without effect is an error, and so are two places of the configuration."""
    with pytest.raises(SettingsError, match=sentence):
        load({**TOLD, **told})
