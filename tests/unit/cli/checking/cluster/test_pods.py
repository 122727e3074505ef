"""Tests of the check of a cluster's Pods, and of the injector's configuration."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from meshwright.cli.checking.cluster.pods import Injection, config_of, sorted_out
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, InjectionConfig
from meshwright.kubernetes.injection.pod_injection import InjectionInputs, injected
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject
from meshwright.sidecars.registry import DriverRegistry

INJECT, REVISION = "meshwright.dev/inject", "meshwright.dev/revision"
CONFIG = InjectionConfig(image="proxy:1")
DRIVERS = DriverRegistry.discover().drivers
NOW = datetime(2026, 1, 1, tzinfo=UTC)
INJECTION = Injection(CONFIG, DRIVERS, MeshConfig(), (1, 30))


def _namespace(name: str, **labels: str) -> NamespaceObject:
    return NamespaceObject(Namespace(name), tuple(sorted(labels.items())))


def _pod(name: str, namespace: str, phase: str = "Running") -> Any:
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {"phase": phase}}


DEFAULT = _namespace("shop", **{INJECT: "true"})
CANARY = _namespace("tried", **{INJECT: "true", REVISION: "canary"})


@pytest.mark.parametrize(("revision", "namespace"), [("", "shop"), ("canary", "tried"), ("other", None)])
def test_each_control_plane_checks_the_namespaces_of_its_revision(
    revision: str, namespace: str | None
) -> None:
    """Namespaces that chose another revision are left to that control plane's check."""
    pods = [
        _pod("one", "shop"),
        _pod("one", "tried"),
        _pod("one", "plain"),
        _pod("ended", "shop", "Succeeded"),
    ]
    pods_by_state = sorted_out(INJECTION, [DEFAULT, CANARY, _namespace("plain")], pods, NOW, revision)
    assert pods_by_state.asking == ({namespace} if namespace else frozenset())
    assert [item.name for item in pods_by_state.without] == ([f"{namespace}/one"] if namespace else [])
    assert (pods_by_state.injected, pods_by_state.outdated) == (0, ())


def test_outdated_pods_are_reported_for_their_own_revision_only() -> None:
    """Only the Pod in the namespace of this revision is reported, with the difference."""
    old = InjectionInputs(InjectionConfig(image="proxy:0"), DRIVERS, version=(1, 30))
    pods = []
    for namespace in (DEFAULT, CANARY):
        made: Any = injected(old, namespace, _pod("one", str(namespace.name))).pod
        pods.append(made)
    pods_by_state = sorted_out(INJECTION, [DEFAULT, CANARY], pods, NOW)
    (other,) = pods_by_state.outdated
    assert (other.name, "image is proxy:0; a new Pod gets proxy:1" in other.why) == ("shop/one", True)
    assert pods_by_state.injected == 1


def _config_map(text: str) -> Any:
    return {"data": {"config.yaml": text}}


def test_injection_configuration_is_read_as_by_the_server() -> None:
    """The given namespace of the control plane overrides the one in the ConfigMap."""
    home = "mesh"
    assert config_of(None, home) == InjectionConfig(control_plane_namespace=Namespace(home))
    read = config_of(_config_map("controlPlane: {namespace: elsewhere}\nmesh: osm\n"), home)
    assert (read.control_plane_namespace, read.mesh) == (home, "osm")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("policy: enabled\npolicy: disabled\n", "config.yaml is wrong in line 2"),
        ("a: [\n", "config.yaml is not YAML: line"),
        ("policy: enabled\n---\npolicy: enabled\n", "config.yaml must have one document"),
        ("polcy: enabled\n", "polcy"),
    ],
)
def test_invalid_injection_configuration_is_named(text: str, named: str) -> None:
    """A configuration that the server refuses is an error, also if other YAML parsers accept it."""
    with pytest.raises(ConfigurationError, match=named):
        config_of(_config_map(text), "mesh")


def _status(name: str, **state: Any) -> dict[str, Any]:
    return {"name": name, "image": "proxy:1", "started": False, "ready": False, **state}


def _waiting(reason: str) -> dict[str, Any]:
    return {"state": {"waiting": {"reason": reason}}}


def _killed(ago: timedelta) -> dict[str, Any]:
    at = (NOW - ago).isoformat()
    return {"lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at}}}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: Insufficient memory."}
RUNS = {"state": {"running": {}}, "started": True, "ready": True}
SIDECAR, INIT = "meshwright-sidecar", "meshwright-init"


@pytest.mark.parametrize(
    ("phase", "age", "status", "unready", "late"),
    [
        ("Pending", 9, [_status(SIDECAR, **_waiting("PodInitializing"))], "", ""),
        ("Running", 960, [_status(SIDECAR, **RUNS)], "", ""),
        (
            "Pending",
            9,
            [_status(SIDECAR, **_waiting("CrashLoopBackOff"), **_killed(timedelta(seconds=9)))],
            "meshwright-sidecar: CrashLoopBackOff, ended by OOMKilled, exit code 137",
            "",
        ),
        (
            "Pending",
            9,
            [_status(SIDECAR, **_waiting("ImagePullBackOff"))],
            "meshwright-sidecar: ImagePullBackOff of proxy:1",
            "",
        ),
        (
            "Pending",
            9,
            [_status(INIT, state={"terminated": {"exitCode": 1, "reason": "Error"}})],
            "meshwright-init: ended by Error, exit code 1",
            "",
        ),
        ("Running", 9, [_status(SIDECAR, state={"running": {}})], "the container has not started", ""),
        (
            "Pending",
            960,
            [_status(SIDECAR, **_waiting("PodInitializing"))],
            "",
            "not started for 16 min: PodInitializing",
        ),
        (
            "Pending",
            960,
            [],
            "",
            "not started for 16 min: no node for the Pod: 0/1 nodes: Insufficient memory.",
        ),
        ("Pending", 960, [_status(SIDECAR, **RUNS)], "", ""),
        (
            "Running",
            960,
            [_status(SIDECAR, **RUNS, **_killed(timedelta(minutes=2)))],
            "",
            "meshwright-sidecar: killed for its memory (OOMKilled) 2 min ago, and runs again",
        ),
        ("Running", 960, [_status(SIDECAR, **RUNS, **_killed(timedelta(hours=2)))], "", ""),
        ("Pending", 960, [_status(SIDECAR, **RUNS), _status("app", **_waiting("ErrImagePull"))], "", ""),
    ],
)
def test_sidecar_that_cannot_start_is_found_in_every_phase(
    phase: str, age: int, status: list[dict[str, Any]], unready: str, late: str
) -> None:
    """A Pod is Pending while its native sidecar crashes or has no image, and must be counted nevertheless."""
    pod = injected(InjectionInputs(CONFIG, DRIVERS, version=(1, 30)), DEFAULT, _pod("web", "shop", phase)).pod
    made: Any = pod
    made["metadata"]["creationTimestamp"] = (NOW - timedelta(seconds=age)).isoformat()
    conditions = [] if status else [UNSCHEDULABLE]
    made["status"] = {"phase": phase, "initContainerStatuses": status, "conditions": conditions}
    pods_by_state = sorted_out(INJECTION, [DEFAULT], [made], NOW)
    assert [item.why for item in pods_by_state.unready] == ([unready] if unready else [])
    assert [item.why for item in pods_by_state.late] == ([late] if late else [])
    assert pods_by_state.injected == 1
