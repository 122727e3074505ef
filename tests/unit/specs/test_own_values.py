"""Tests of wrong values of labels and annotations, which are reported like wrong names."""

import itertools

import pytest

from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
from meshwright.kubernetes.injection.decision import decide
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.mesh.kinds import NAMESPACE, POD
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.mesh.origins import InFile
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.pod import Placement
from meshwright.sidecars.registry import DriverRegistry
from meshwright.specs.own_values import RULES
from meshwright.specs.reader import read

INJECT, OSM = "meshwright.dev/inject", "openservicemesh.io"
CONTAINERS = {"containers": [{"name": "app", "image": "app:1"}]}
WORDS = ("true", "false", "True", "TRUE", "enabled", "disabled", "yes", "no", "on", "1", "")


def said(kind: str, section: str, name: str, value: str) -> list[tuple[str, str]]:
    """Return the problems of an object with one label or annotation, as codes and fields."""
    metadata = {"name": "shop", section: {name: value}}
    spec = {"spec": CONTAINERS, "status": {"podIP": "10.0.0.1"}} if kind == "Pod" else {}
    manifest_reading = read({"apiVersion": "v1", "kind": kind, "metadata": metadata, **spec}, InFile(""))
    return [
        (problem.code, problem.field)
        for problem in manifest_reading.problems
        if problem.field.startswith(f"metadata.{section}")
    ]


@pytest.mark.parametrize(
    ("kind", "section", "name", "value", "code"),
    [
        ("Namespace", "labels", INJECT, "enabled", "MW1029"),
        ("Namespace", "labels", INJECT, "True", "MW1029"),
        ("Namespace", "labels", INJECT, "true", ""),
        ("Namespace", "annotations", INJECT, "yes", "MW1029"),
        ("Namespace", "labels", "meshwright.dev/revision", "Canary", "MW1029"),
        ("Namespace", "labels", "meshwright.dev/revision", "canary-2", ""),
        ("Namespace", "annotations", "meshwright.dev/overlays", "large;debug", "MW1029"),
        ("Namespace", "annotations", f"{OSM}/sidecar-injection", "on", "MW1029"),
        ("Namespace", "annotations", f"{OSM}/sidecar-injection", "enabled", ""),
        ("Namespace", "annotations", f"{OSM}/metrics", "true", "MW1029"),
        ("Namespace", "annotations", f"{OSM}/sidecar-injektion", "enabled", "MW1025"),
        ("Namespace", "annotations", f"{OSM}/monitored-by", "osm", "MW1025"),
        ("Namespace", "labels", f"{OSM}/monitored-by", "osm", ""),
        ("Pod", "labels", INJECT, "enabled", "MW1029"),
        ("Pod", "annotations", "meshwright.dev/sidecar-placement", "beside", "MW1029"),
        ("Pod", "annotations", f"{OSM}/outbound-port-exclusion-list", "redis", "MW1029"),
        ("Pod", "annotations", f"{OSM}/outbound-port-exclusion-list", "6379, 27017", ""),
        ("Pod", "annotations", f"{OSM}/outbound-ip-range-exclusion-list", "10.0.0.0/99", "MW1029"),
        ("Pod", "annotations", f"{OSM}/outbound-port-exclusions", "6379", "MW1025"),
        ("Pod", "annotations", "meshwright.dev/settings", "0123abcd", ""),
    ],
)
def test_wrong_value_of_a_label_or_annotation_is_reported(
    kind: str, section: str, name: str, value: str, code: str
) -> None:
    """The problem names its place; lint, Events and kubectl show it."""
    expected = [(code, f"metadata.{section}[{name}]")] if code else []
    assert said(kind, section, name, value) == expected


@pytest.mark.parametrize(("name", "value"), [*itertools.product((INJECT, f"{OSM}/sidecar-injection"), WORDS)])
@pytest.mark.parametrize("kind", [NAMESPACE, POD])
def test_values_are_accepted_exactly_if_the_injector_accepts_them(
    kind: object, name: str, value: str
) -> None:
    """A value is reported if and only if the injector would refuse it."""
    of_namespace, of_pod = ({name: value}, {}) if kind is NAMESPACE else ({}, {name: value})
    namespace = NamespaceObject(Namespace("shop"), (), tuple(of_namespace.items()))
    try:
        decide(
            InjectionConfig(), namespace, {"metadata": {"annotations": of_pod}, "spec": {"containers": []}}
        )
        refused = False
    except CannotPatchError:
        refused = True
    assert bool(said(str(kind), "annotations", name, value)) is refused


def test_placements_of_the_injector_are_accepted() -> None:
    """The rule must know every value of Placement."""
    rule = RULES[POD]["annotations"]["meshwright.dev/sidecar-placement"]
    assert all(rule(placement.value) == "" for placement in Placement)


def test_webhook_warns_of_misspelt_annotations_of_a_pod() -> None:
    """The webhook warns at creation, before lint reads the Pod."""
    metadata = {"annotations": {"meshwright.dev/overlay": "large", f"{OSM}/metricz": "enabled"}}
    known = InjectionInputs(InjectionConfig(image="proxy:1"), DriverRegistry.discover().drivers)
    pod = {"metadata": {"name": "one", **metadata}, "spec": CONTAINERS}
    warnings = injected(known, NamespaceObject(Namespace("shop")), pod).warnings  # type: ignore[arg-type]
    assert [warning.partition(":")[0] for warning in warnings] == [
        "metadata.annotations[meshwright.dev/overlay]",
        f"metadata.annotations[{OSM}/metricz]",
    ]
