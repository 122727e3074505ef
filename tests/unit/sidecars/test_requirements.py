"""Tests of the requirements of a policy, and of the problems of drivers that lack a capability."""

from dataclasses import replace

import pytest

from catalog.policy.group_policy import proxy_policy
from catalog.relations.groups import group_of, members
from catalog.store.view import View
from meshwright.mesh.kinds import (
    MESH_CONFIG,
    RETRY,
    ROUTE_POLICY,
    SERVICE,
    TELEMETRY,
    TRAFFIC_SPLIT,
    TRAFFIC_TARGET,
    UPSTREAM_POLICY,
    UPSTREAM_TRAFFIC_SETTING,
    WORKLOAD,
)
from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.workload import WorkloadKey
from meshwright.sidecars.codes import Code
from meshwright.sidecars.contract.driver import Capability
from meshwright.sidecars.document.driver import DocumentDriver
from meshwright.sidecars.envoy.driver import EnvoyDriver
from meshwright.sidecars.lint import InstalledDrivers, problems
from meshwright.sidecars.requirements import Requirement, requirements
from tests.meshes.texts import DRIVER
from tests.meshes.views import POLICY, mesh_config, namespace, view, workload

STORE = ServiceKey(Namespace("shop"), ServiceName("store"))
BY_PATH, HALVES = PolicyKey(Namespace("shop"), "by-path"), PolicyKey(Namespace("shop"), "halves")
INSTALLED = InstalledDrivers({"document": DocumentDriver(), "envoy": EnvoyDriver()}, {})


def _needs(of: View, name: str = "one") -> tuple[Requirement, ...]:
    group = group_of(of, of.workloads[WorkloadKey(Namespace("shop"), name)])
    return requirements(proxy_policy(of, group))


def _said(of: View, installed: InstalledDrivers = INSTALLED) -> list[tuple[str, str, str, str]]:
    return [
        (problem.code, str(problem.key), problem.field, problem.value) for problem in problems(of, installed)
    ]


def test_requirements_name_the_capability_and_the_object() -> None:
    """Interception, routes by request, both kinds of splits and TCP ports are required."""
    assert _needs(view(POLICY, workload("one"))) == (
        Requirement(Capability.EXPLICIT_INTERCEPTION, WORKLOAD),
        Requirement(Capability.HTTP_ROUTES, ObjectKey.from_name(TRAFFIC_TARGET, BY_PATH)),
        Requirement(Capability.TCP_ROUTES, ObjectKey.from_name(SERVICE, STORE)),
        Requirement(Capability.TCP_SPLITS, ObjectKey.from_name(TRAFFIC_SPLIT, HALVES)),
        Requirement(Capability.TRAFFIC_SPLITS, ObjectKey.from_name(TRAFFIC_SPLIT, HALVES)),
    )


def test_egress_is_required_only_in_transparent_interception() -> None:
    """The MeshConfig requires egress, but explicit clients have no calls that could leave the mesh."""
    egress = mesh_config("logLevel: error").replace("{sidecar:", "{traffic: {enableEgress: true}, sidecar:")
    result = _needs(view(workload("one", explicit=False), egress))
    assert result[:2] == (
        Requirement(Capability.EGRESS_PASSTHROUGH, MESH_CONFIG),
        Requirement(Capability.TRANSPARENT_INTERCEPTION, WORKLOAD),
    )
    assert Requirement(Capability.EGRESS_PASSTHROUGH, MESH_CONFIG) not in _needs(
        view(workload("one"), egress)
    )


OF_CALLS = """
apiVersion: policy.openservicemesh.io/v1alpha1
kind: Retry
metadata: {name: again, namespace: shop}
spec:
  source: {kind: ServiceAccount, name: store, namespace: shop}
  destinations: [{kind: Service, name: store, namespace: shop}]
  retryPolicy: {retryOn: 5xx, numRetries: 2}
---
apiVersion: policy.openservicemesh.io/v1alpha1
kind: UpstreamTrafficSetting
metadata: {name: few, namespace: shop}
spec:
  host: store.shop
  connectionSettings: {tcp: {maxConnections: 1}}
  rateLimit: {local: {http: {requests: 1, unit: second}}}
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: random, namespace: shop}
spec: {service: store, loadBalancing: {policy: Random}}
---
apiVersion: policy.meshwright.dev/v1alpha1
kind: RoutePolicy
metadata: {name: quick, namespace: shop}
spec: {service: store, rules: [{timeout: {request: 1s}}]}
---
apiVersion: policy.openservicemesh.io/v1alpha1
kind: Telemetry
metadata: {name: logs, namespace: shop}
spec: {accessLog: {format: "%DURATION%"}}
"""


def test_objects_for_calls_require_their_capabilities() -> None:
    """A requirement has only the kind if policy no longer knows the object.

    Without these objects, none is required.
    """
    plain, answer = (set(_needs(view(POLICY, workload("one"), *more))) for more in ((), (OF_CALLS,)))
    quick = ObjectKey.from_name(ROUTE_POLICY, PolicyKey(Namespace("shop"), "quick"))
    logs = ObjectKey.from_name(TELEMETRY, PolicyKey(Namespace("shop"), "logs"))
    wanted = {
        Requirement(Capability.RETRIES, RETRY),
        Requirement(Capability.LIMITS, UPSTREAM_TRAFFIC_SETTING),
        Requirement(Capability.UPSTREAM_POLICIES, UPSTREAM_POLICY),
        Requirement(Capability.ROUTE_POLICIES, quick),
        Requirement(Capability.ACCESS_LOGS, logs),
    }
    assert answer == plain | wanted
    assert not plain & wanted
    incapable = problems(view(POLICY, workload("one", "document"), OF_CALLS), INSTALLED)
    missing = {
        problem.expected.split(",")[0].removeprefix("This driver does not support ") for problem in incapable
    }
    assert {requirement.capability for requirement in wanted} <= missing


def test_envoy_driver_has_every_required_capability() -> None:
    """A mesh with only Envoy has no problems."""
    assert _said(view(POLICY, workload("one"))) == []


LEFT_OUT = ", so that part is left out. Choose another driver, or change the object."


def test_missing_capability_is_reported_for_each_workload() -> None:
    """The problem names the object that requires it, or else the workload's own interception."""
    of = view(POLICY, workload("one", "document"), workload("two", "document", 2, explicit=False))
    result = [
        (
            str(problem.key),
            problem.expected.removeprefix("This driver does not support ").removesuffix(LEFT_OUT),
        )
        for problem in problems(of, INSTALLED)
    ]
    http = "http-routes, which TrafficTarget shop/by-path needs"
    split = "traffic-splits, which TrafficSplit shop/halves needs"
    tcp = "tcp-splits, which TrafficSplit shop/halves needs"
    own = "transparent-interception, which the workload's own interception needs"
    one, two = "Workload shop/one", "Workload shop/two"
    assert sorted(result) == sorted(
        [(one, http), (one, split), (one, tcp), (two, http), (two, split), (two, tcp), (two, own)]
    )
    assert {problem.code for problem in problems(of, INSTALLED)} == {Code.INCAPABLE}


def test_pod_counts_as_intercepted() -> None:
    """A Pod has no field for other interception, so a driver that cannot intercept is reported."""
    said_of_it = f"labels: {{meshwright.dev/proxy-uuid: p}}, annotations: {{{DRIVER}: document}}"
    metadata = f"metadata: {{name: p, namespace: shop, {said_of_it}}}"
    pod = f"apiVersion: v1\nkind: Pod\n{metadata}\nstatus: {{podIP: 10.0.0.7}}\n"
    (problem,) = problems(view(pod), INSTALLED)
    assert (problem.code, str(problem.key), problem.value) == (Code.INCAPABLE, "Pod shop/p", "document")
    needs = "transparent-interception, which a Pod (its traffic counts as intercepted) needs"
    assert problem.expected == f"This driver does not support {needs}{LEFT_OUT}"


CLASS = "spec.sidecar.sidecarClass"
ANNOTATION = "metadata.annotations.meshwright.dev/sidecar-driver"


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        (
            (workload("one", "pipy"), workload("two", host=2)),
            [(Code.UNKNOWN_DRIVER, "Workload shop/one", ANNOTATION, "pipy")],
        ),
        (
            (workload("one"), workload("two", "envoy", 2), namespace("pipy")),
            [(Code.UNKNOWN_DRIVER, "Namespace shop", ANNOTATION, "pipy")],
        ),
        (
            (workload("one"), workload("two", "envoy", 2), mesh_config("sidecarClass: pipy")),
            [
                (
                    Code.UNKNOWN_DRIVER,
                    "MeshConfig osm-system/osm-mesh-config",
                    "spec.sidecar.sidecarClass",
                    "pipy",
                )
            ],
        ),
        (
            (
                workload("one"),
                mesh_config("sidecarDrivers: [{sidecarName: envoy, sidecarDisabledMTLS: true}]"),
            ),
            [
                (
                    Code.NO_MTLS,
                    "MeshConfig osm-system/osm-mesh-config",
                    "spec.sidecar.sidecarDrivers.sidecarDisabledMTLS",
                    "envoy",
                )
            ],
        ),
        (
            (
                workload("one"),
                mesh_config("sidecarDrivers: [{sidecarName: envoy}, {sidecarName: envoy}]"),
            ),
            [
                (
                    Code.DRIVER_TWICE,
                    "MeshConfig osm-system/osm-mesh-config",
                    "spec.sidecar.sidecarDrivers",
                    "envoy",
                )
            ],
        ),
    ],
)
def test_problem_of_a_driver_is_reported_at_the_object_that_names_it(
    documents: tuple[str, ...], expected: list[tuple[str, str, str, str]]
) -> None:
    """It is reported once, at the object that must be corrected."""
    assert _said(view(*documents)) == expected


def test_driver_that_is_not_running_is_reported() -> None:
    """The problem is at the object that names it.

    If the running drivers are unknown, as offline, there is none.
    """
    of = view(workload("one", "document"), workload("two", host=2))
    running = replace(INSTALLED, running=frozenset({"envoy"}))
    assert _said(of, running)[-1] == (Code.NOT_STARTED, "Workload shop/one", ANNOTATION, "document")
    assert not [item for item in _said(of) if item[0] == Code.NOT_STARTED]
    by_config = view(workload("one"), mesh_config("sidecarClass: document"), namespace("''"))
    (lines,) = [item for item in _said(by_config, running) if item[0] == Code.NOT_STARTED]
    assert lines == (Code.NOT_STARTED, "MeshConfig osm-system/osm-mesh-config", CLASS, "document")


def test_environment_chooses_the_driver_only_as_a_default() -> None:
    """The MeshConfig takes precedence over the environment, and a workload over both."""
    here = replace(INSTALLED, environment={"MESHWRIGHT_SIDECAR_CLASS": "document"})
    config = view().config.sidecar
    assert here.driver_of(config, "").name == "document"
    assert here.driver_of(view(mesh_config("sidecarClass: envoy")).config.sidecar, "").name == "envoy"
    assert here.driver_of(view(mesh_config("sidecarClass: document")).config.sidecar, "envoy").name == "envoy"


def test_group_has_the_driver_of_its_workload_or_namespace() -> None:
    """Without either of them, the group has no driver of its own."""
    of = view(workload("one", "document"), workload("two", host=2), namespace("envoy"))
    drivers = {group.driver for group in members(of)}
    assert drivers == {"document", "envoy"}
    assert {group.driver for group in members(view(workload("one")))} == {""}
