"""Lint of gateways."""

from dataclasses import replace

import pytest

import catalog.lint.problems
from catalog.lint.codes import Code
from meshwright.mesh.gateway.gateways import GatewayClass
from tests.meshes import gateway as g

UNUSED = replace(g.gateway("edge"), unused=("spec.tls.frontend", "spec.defaultScope"))


@pytest.mark.parametrize(
    ("classes", "fields"),
    [
        ((g.CLASS,), ["spec.tls.frontend", "spec.defaultScope"]),
        ((GatewayClass("meshwright", "example.com/other"),), []),
        ((), []),
    ],
)
def test_fields_without_effect_are_a_problem_of_our_gateways(
    classes: tuple[GatewayClass, ...], fields: list[str]
) -> None:
    """Another controller may support the fields."""
    found = [
        (str(problem.key), problem.field, problem.severity.value)
        for problem in catalog.lint.problems.problems(g.view(UNUSED, *classes))
        if problem.code == Code.GATEWAY_FIELD_NOT_USED
    ]
    assert found == sorted(("Gateway default/edge", field, "warning") for field in fields)
