"""Conditions of ClientTrafficPolicies, from the problems that lint finds."""

from datetime import UTC, datetime

from catalog.lint.problems import problems
from meshwright.kubernetes.status.conditions.conditions import conditions
from meshwright.kubernetes.status.rollouts import Progress
from meshwright.kubernetes.status.statements import WITH_STATUS
from meshwright.mesh.kinds import CLIENT_TRAFFIC_POLICY
from meshwright.mesh.policies.client_traffic import ClientTarget, ClientTrafficPolicy
from tests.meshes import gateway as g
from tests.meshes import values as a

NOW = datetime(2026, 11, 30, tzinfo=UTC)
OLD = g.client_policy("old", created="2026-11-30T10:00:00Z")


def written(*policies: ClientTrafficPolicy) -> dict[str, list[tuple[str, str, str]]]:
    """Return type, status and reason of the conditions of each policy beside gateway edge."""
    found = problems(g.view(g.CLASS, g.gateway("edge"), *policies))
    result = {}
    for policy in policies:
        own = [problem for problem in found if problem.key == a.object_key(policy)]
        made = conditions(own, Progress(1, 1), 1, (), NOW, server="a")
        result[policy.key.name] = [(item.type, item.status, item.reason) for item in made]
    return result


def test_policy_has_conditions() -> None:
    """Events alone would not show an owner of a Gateway whether the limits are in force."""
    assert CLIENT_TRAFFIC_POLICY in WITH_STATUS


def test_conditions_name_the_conflict_and_the_missing_gateway() -> None:
    """The older policy is in force; the conflict of the younger one does not make it invalid."""
    young = g.client_policy("young", created="2026-11-30T11:00:00Z")
    fine = [
        ("Accepted", "True", "Accepted"),
        ("Conflicted", "False", "NoConflict"),
        ("Programmed", "True", "Applied"),
    ]
    assert written(OLD, young, g.client_policy("lost", ClientTarget("edgy"))) == {
        "old": fine,
        "young": [fine[0], ("Conflicted", "True", "MW2156"), fine[2]],
        "lost": [("Accepted", "False", "MW2155"), *fine[1:]],
    }
