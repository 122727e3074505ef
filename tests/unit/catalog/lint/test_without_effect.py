"""Fields of a Service that kube-proxy obeys and sidecars do not."""

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
    """Return severity, field and value of what is said of the Service's fields."""
    view = a.view(SERVICE, a.workload("web", "10.0.0.5", sidecar=sidecar))
    said = [each for each in problems(view) if each.code == "MW2027"]
    assert all("The field has no effect on calls by sidecars" in each.expected for each in said)
    return [(each.severity.value, each.field, each.value) for each in said]


def test_they_are_told() -> None:
    """Nearness is a preference, whose loss breaks nothing; the others are relied on."""
    assert found(sidecar=True) == [
        ("info", "metadata.annotations[service.kubernetes.io/topology-mode]", "Auto"),
        ("warning", "spec.externalIPs", "192.0.2.1"),
        ("warning", "spec.internalTrafficPolicy", "Local"),
        ("warning", "spec.sessionAffinity", "ClientIP"),
        ("info", "spec.trafficDistribution", "PreferClose"),
    ]


def test_not_of_services_of_no_mesh() -> None:
    """Their calls are not those of sidecars."""
    assert found(sidecar=False) == []
