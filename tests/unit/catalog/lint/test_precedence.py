"""Problems about precedence: a policy is reported only if another one is for the same workloads."""

import pytest

from catalog.lint.codes import Code
from catalog.lint.problems import problems
from tests.meshes.views import view

TELEMETRY = """
apiVersion: policy.openservicemesh.io/v1alpha1
kind: Telemetry
metadata: {{name: {name}, namespace: shop}}
spec: {{selector: {{app: {app}}}, accessLog: {{filter: {{minStatus: 500}}}}}}
"""
AUTHORIZATION = """
apiVersion: policy.meshwright.dev/v1alpha1
kind: ExternalAuthorization
metadata: {{name: {name}, namespace: shop}}
spec: {{serviceAccounts: [{account}], host: opa.example.org, port: 9191}}
"""
PRECEDENCE = frozenset({Code.SHADOWED_TELEMETRY, Code.OVERRULED_AUTHORIZATION})


def reported(*documents: str) -> list[str]:
    """Return the names of the objects with a problem about precedence."""
    return [
        problem.key.name
        for problem in problems(view(*documents))
        if problem.key is not None and problem.code in PRECEDENCE
    ]


@pytest.mark.parametrize(("other", "expected"), [("web", ["second"]), ("store", [])])
def test_telemetry_is_shadowed_only_by_one_with_the_same_selector(other: str, expected: list[str]) -> None:
    """Of two objects with the same selector and age, the first by name takes precedence."""
    documents = (
        TELEMETRY.format(name="first", app="web"),
        TELEMETRY.format(name="second", app=other),
    )
    assert reported(*documents) == expected


@pytest.mark.parametrize(("other", "expected"), [("web", ["second"]), ("store", [])])
def test_authorization_is_overruled_only_by_one_for_the_same_account(other: str, expected: list[str]) -> None:
    """Of two objects for one ServiceAccount with the same age, the first by name takes precedence."""
    documents = (
        AUTHORIZATION.format(name="first", account="web"),
        AUTHORIZATION.format(name="second", account=other),
    )
    assert reported(*documents) == expected
