"""Tests of lint for fields of a Service that kube-proxy obeys and sidecars ignore."""

from dataclasses import replace

from catalog.lint.problems import problems
from tests.meshes import values as a

FIELDS = (
    ("externalIPs", "192.0.2.1"),
    ("metadata.annotations[service.kubernetes.io/topology-mode]", "Auto"),
    ("internalTrafficPolicy", "Local"),
    ("sessionAffinity", "ClientIP"),
    ("trafficDistribution", "PreferClose"),
)
SERVICE = replace(a.service("web"), without_effect=FIELDS)


def found(*, sidecar: bool) -> list[tuple[str, str, str]]:
    """Return severity, field and value of the problems of the Service's fields."""
    view = a.view(SERVICE, a.workload("web", "10.0.0.5", sidecar=sidecar))
    answer = [problem for problem in problems(view) if problem.code == "MW2027"]
    assert all("The field does not affect calls by sidecars" in problem.expected for problem in answer)
    return [(problem.severity.value, problem.field, problem.value) for problem in answer]


def test_ignored_service_fields_are_reported_by_severity() -> None:
    """A topology preference is an info, because its loss breaks nothing; other fields are warnings."""
    assert found(sidecar=True) == [
        ("info", "metadata.annotations[service.kubernetes.io/topology-mode]", "Auto"),
        ("warning", "spec.externalIPs", "192.0.2.1"),
        ("warning", "spec.internalTrafficPolicy", "Local"),
        ("warning", "spec.sessionAffinity", "ClientIP"),
        ("info", "spec.trafficDistribution", "PreferClose"),
    ]


def test_ignored_fields_of_a_service_without_sidecars_are_not_reported() -> None:
    """A Service without sidecars is not called through sidecars of the mesh, so its fields have effect."""
    assert found(sidecar=False) == []
