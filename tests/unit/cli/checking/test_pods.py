"""A cluster's Pods by what is to be said of them, and the configuration by which that is decided."""

from typing import Any

import pytest

from cli.checking.pods import Injection, config_of, sorted_out
from injector.configuration import ConfigurationError, InjectionConfig
from injector.injecting import Known, injected
from mesh.config import MeshConfig
from mesh.names import Namespace
from mesh.objects import NamespaceObject
from sidecars.registry import DriverRegistry

INJECT, REVISION = "meshwright.dev/inject", "meshwright.dev/revision"
CONFIG = InjectionConfig(image="proxy:1")
DRIVERS = DriverRegistry.discover().drivers
INJECTION = Injection(CONFIG, DRIVERS, MeshConfig(), (1, 30))


def _namespace(name: str, **labels: str) -> NamespaceObject:
    return NamespaceObject(Namespace(name), tuple(sorted(labels.items())))


def _pod(name: str, namespace: str, phase: str = "Running") -> Any:
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {"phase": phase}}


DEFAULT = _namespace("shop", **{INJECT: "true"})
CANARY = _namespace("tried", **{INJECT: "true", REVISION: "canary"})


@pytest.mark.parametrize(("revision", "namespace"), [("", "shop"), ("canary", "tried"), ("other", None)])
def test_each_control_plane_has_the_namespaces_that_have_chosen_it(
    revision: str, namespace: str | None
) -> None:
    """What another one would do is no business of its check."""
    pods = [
        _pod("one", "shop"),
        _pod("one", "tried"),
        _pod("one", "plain"),
        _pod("ended", "shop", "Succeeded"),
    ]
    found = sorted_out(INJECTION, [DEFAULT, CANARY, _namespace("plain")], pods, revision)
    assert found.asking == ({namespace} if namespace else frozenset())
    assert [each.name for each in found.without] == ([f"{namespace}/one"] if namespace else [])
    assert (found.injected, found.outdated) == (0, ())


def test_a_pod_of_another_make_is_one_of_its_own_revision() -> None:
    """Made by an older configuration in both namespaces."""
    old = Known(InjectionConfig(image="proxy:0"), DRIVERS, version=(1, 30))
    pods = []
    for each in (DEFAULT, CANARY):
        made: Any = injected(old, each, _pod("one", str(each.name))).pod
        pods.append(made)
    found = sorted_out(INJECTION, [DEFAULT, CANARY], pods)
    (other,) = found.outdated
    assert (other.name, "image is proxy:0, and would be proxy:1" in other.why) == ("shop/one", True)
    assert found.injected == 1


def _config_map(text: str) -> Any:
    return {"data": {"config.yaml": text}}


def test_the_configuration_is_read_as_the_server_reads_it() -> None:
    """Its own namespace is known to it better than to a file."""
    home = "mesh"
    assert config_of(None, home) == InjectionConfig(control_plane_namespace=Namespace(home))
    read = config_of(_config_map("controlPlane: {namespace: elsewhere}\nmesh: osm\n"), home)
    assert (read.control_plane_namespace, read.mesh) == (home, "osm")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("policy: enabled\npolicy: disabled\n", "config.yaml is wrong in line 2"),
        ("a: [\n", "config.yaml is not YAML: line"),
        ("policy: enabled\n---\npolicy: enabled\n", "config.yaml must hold one document"),
        ("polcy: enabled\n", "polcy"),
    ],
)
def test_a_configuration_that_the_server_does_not_take_is_said(text: str, named: str) -> None:
    """Also what other readers of YAML would take."""
    with pytest.raises(ConfigurationError, match=named):
        config_of(_config_map(text), "mesh")
