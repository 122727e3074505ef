"""Wrong values of labels and annotations are told, as wrong names are."""

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
    found = read({"apiVersion": "v1", "kind": kind, "metadata": metadata, **spec}, InFile(""))
    return [
        (each.code, each.field) for each in found.problems if each.field.startswith(f"metadata.{section}")
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
def test_a_wrong_value_is_told(kind: str, section: str, name: str, value: str, code: str) -> None:
    """At its place, as a warning; who reads lint, Events or what kubectl prints sees it."""
    expected = [(code, f"metadata.{section}[{name}]")] if code else []
    assert said(kind, section, name, value) == expected


@pytest.mark.parametrize(("name", "value"), [*itertools.product((INJECT, f"{OSM}/sidecar-injection"), WORDS)])
@pytest.mark.parametrize("kind", [NAMESPACE, POD])
def test_the_words_are_those_of_the_injector(kind: object, name: str, value: str) -> None:
    """A word that the injector refuses is a wrong value, and no other is."""
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


def test_the_places_are_those_of_the_injector() -> None:
    """There is no second list of them."""
    rule = RULES[POD]["annotations"]["meshwright.dev/sidecar-placement"]
    assert all(rule(each.value) == "" for each in Placement)


def test_who_makes_a_pod_is_warned_of_a_slip_in_its_annotations() -> None:
    """By the webhook that gives it a sidecar: lint looks later, and elsewhere."""
    metadata = {"annotations": {"meshwright.dev/overlay": "large", f"{OSM}/metricz": "enabled"}}
    known = InjectionInputs(InjectionConfig(image="proxy:1"), DriverRegistry.discover().drivers)
    pod = {"metadata": {"name": "one", **metadata}, "spec": CONTAINERS}
    warnings = injected(known, NamespaceObject(Namespace("shop")), pod).warnings  # type: ignore[arg-type]
    assert [each.partition(":")[0] for each in warnings] == [
        "metadata.annotations[meshwright.dev/overlay]",
        f"metadata.annotations[{OSM}/metricz]",
    ]
