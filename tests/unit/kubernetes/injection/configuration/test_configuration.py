"""Tests of the injection configuration: every field, the defaults, and errors with their field."""

from pathlib import Path
from typing import Any

import pytest

from meshwright.kubernetes.injection.configuration.configuration import (
    RESOURCES,
    ConfigurationError,
    InjectionConfig,
    Policy,
    read,
)
from meshwright.kubernetes.injection.configuration.overlays import chosen
from meshwright.kubernetes.injection.selectors import LabelSelector, Operator, Requirement
from meshwright.kubernetes.injection.shapes import checked
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.pod import Placement, PullPolicy, RulesOwner, TokenEnrolment
from tests.tools import libyaml

CASES = Path(__file__).parents[1] / "cases"


def test_empty_configuration_has_the_documented_defaults() -> None:
    """Empty fields also have their defaults, except empty resources, which request nothing."""
    nothing: list[Any] = [None, {}, {"sidecar": None, "overlays": {}, "controlPlane": {}}]
    for document in nothing:
        assert read(document, "f") == InjectionConfig()
    assert (InjectionConfig().policy, InjectionConfig().resources) == (Policy.ENABLED, RESOURCES)
    assert read({"sidecar": {"resources": {}}}, "f").resources == {}


def test_every_field_is_read() -> None:
    """The configuration of the cases has nearly all fields."""
    injection_config = read(libyaml.load((CASES / "config.yaml").read_text()), "f")
    assert (injection_config.mesh, injection_config.image, injection_config.init_image) == (
        "bookstore",
        "proxy:1",
        "init:1",
    )
    assert (injection_config.pull_policy, injection_config.pull_secrets, injection_config.placement) == (
        PullPolicy.ALWAYS,
        ("mirror",),
        None,
    )
    assert injection_config.joining == TokenEnrolment(16130, 16131, b"", "roots")
    assert injection_config.never == (LabelSelector((Requirement("tier", Operator.IN, ("batch",)),)),)
    assert injection_config.resources == {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"memory": "256Mi"},
    }
    assert (list(injection_config.overlays), injection_config.default_overlays) == (
        ["debug", "labelled", "large"],
        ("labelled",),
    )
    assert read({"sidecar": {"placement": "classic"}}, "f").placement is Placement.CLASSIC
    assert read({"interception": "cni"}, "f").rules_by is RulesOwner.CNI


WRONG: dict[str, tuple[Any, str]] = {
    "no mapping": ([], "must be a mapping, with fields such as policy and overlays"),
    "an unknown field": (
        {"templates": {}},
        "templates is a mapping of 0 keys: unknown field; the known fields are",
    ),
    "a template": (
        {"overlays": {"a": {"sidecars": {}}}},
        "overlays.a.sidecars is a mapping of 0 keys: unknown",
    ),
    "a container's field": (
        {"overlays": {"a": {"sidecar": {"envs": []}}}},
        "overlays.a.sidecar.envs is a list of 0 items: unknown field; did you mean env?",
    ),
    "a name": (
        {"overlays": {"a": {"sidecar": {"name": "x"}}}},
        'overlays.a.sidecar.name is "x": must be left out, because the field itself names the container',
    ),
    "who sets rules": ({"interception": "kmesh"}, 'interception is "kmesh": must be one of'),
    "an overlay's name": (
        {"overlays": {"A b": {}}},
        "overlays.A b is a mapping of 0 keys: must be a DNS label",
    ),
    "an item without name": (
        {"overlays": {"a": {"sidecar": {"env": [{"value": "1"}]}}}},
        ("overlays.a.sidecar.env[0]: must have name, because list items are merged by this field"),
    ),
    "a list": (
        {"overlays": {"a": {"sidecar": {"env": {"A": "1"}}}}},
        "overlays.a.sidecar.env is a mapping of 1 key: must be a list",
    ),
    "a directive": (
        {"overlays": {"a": {"sidecar": {"env": [{"name": "A", "$patch": "remove"}]}}}},
        'overlays.a.sidecar.env[0].$patch is "remove": must be $patch: delete or $patch: replace',
    ),
    "a volume": (
        {"overlays": {"a": {"volumes": [{"emptyDir": {}}]}}},
        "overlays.a.volumes[0].name: is missing",
    ),
    "a default": (
        {"defaultOverlays": ["a"], "overlays": {"b": {}}},
        "has 'a', which is not an overlay; the overlays are: b",
    ),
    "an empty selector": ({"neverInjectSelector": [{}]}, "an empty selector would select every pod"),
    "an operator": (
        {"alwaysInjectSelector": [{"matchExpressions": [{"key": "a", "operator": "in"}]}]},
        'alwaysInjectSelector[0].matchExpressions[0].operator is "in": must be one of DoesNotExist',
    ),
    "values": (
        {"alwaysInjectSelector": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
        "must be given for the operators In and NotIn, and left out for all others",
    ),
    "a quantity": (
        {"sidecar": {"resources": {"limits": {"cpu": []}}}},
        ("must be a quantity, for example 100m"),
    ),
    "a port": (
        {"controlPlane": {"renewalPort": 0}},
        "controlPlane.renewalPort is 0: must be a whole number from 1 to 65535",
    ),
    "a namespace": (
        {"controlPlane": {"namespace": "A"}},
        'controlPlane.namespace is "A": must be a DNS label',
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_field_is_an_error_with_its_path(name: str) -> None:
    """The file and the field are named, and no configuration is returned."""
    document, words = WRONG[name]
    with pytest.raises(ConfigurationError) as refused:
        read(document, "config.yaml")
    assert str(refused.value).startswith("config.yaml: ")
    assert words in str(refused.value)


def test_overlays_are_chosen_in_order() -> None:
    """The mesh's default overlays come first, then the pod's or else its namespace's, each once."""
    config = read({"overlays": {"a": {}, "b": {}, "c": {}}, "defaultOverlays": ["b"]}, "f")
    space = NamespaceObject(Namespace("shop"), (), (("meshwright.dev/overlays", "c"),))

    def names(said: str | None) -> list[str]:
        pod: Any = {"metadata": {"annotations": {} if said is None else {"meshwright.dev/overlays": said}}}
        return [overlay.name for overlay in chosen(config.overlays, config.default_overlays, space, pod)]

    assert names(None) == ["b", "c"]
    assert names("a, b ,a") == ["b", "a"]
    assert names("") == ["b"]
    with pytest.raises(
        CannotPatchError, match="overlays has 'd', which is not an overlay; the overlays are: a, b, c"
    ):
        names("a,d")


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ([], "spec.template must be a mapping"),
        ({"metadata": {"labels": {"a": 1}}}, "spec.template.metadata.labels.a must be text"),
        ({"spec": {"containers": {}}}, "spec.template.spec.containers must be a list"),
        ({"spec": {"containers": [{"image": "a"}]}}, r"spec.template.spec.containers\[0\].name is missing"),
        ({"spec": {"containers": [None]}}, r"spec.template.spec.containers\[0\] must be a mapping"),
        ({"spec": {"hostNetwork": "yes"}}, "spec.template.spec.hostNetwork must be true or false"),
        (
            {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": True}]}]}},
            r"containers\[0\].ports\[0\].containerPort must be a whole number",
        ),
        (
            {"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 1.5}}}]}},
            "livenessProbe.httpGet.port must be a whole number or text",
        ),
    ],
)
def test_malformed_pod_is_an_error_with_its_field(pod: object, words: str) -> None:
    """A pod in a file was not validated by an API server."""
    with pytest.raises(CannotPatchError, match=words):
        checked(pod, "spec.template")


def test_null_fields_are_treated_as_absent() -> None:
    """The API server does the same. Fields that injection does not use stay unchanged."""
    pod = {
        "metadata": {"labels": None, "x": None},
        "spec": {"volumes": None, "containers": [{"name": "a", "ports": None}]},
    }
    assert checked(pod) == {"metadata": {"x": None}, "spec": {"containers": [{"name": "a"}]}}
