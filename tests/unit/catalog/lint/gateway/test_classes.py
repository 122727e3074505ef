"""Lint of GatewayClasses, and of what depends on a wrong one."""

import pytest

import catalog.lint.problems
from catalog.store.view import View
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, GatewayClass
from tests.meshes import gateway as g
from tests.unit.catalog.lint.gateway.test_gateways import serving


def found(mesh: View, code: str) -> list[tuple[str, str, str, str, str]]:
    """Return severity, object, field, value and text of the problems with a code."""
    return [
        (item.severity.value, str(item.key), item.field, item.value, item.expected)
        for item in catalog.lint.problems.problems(mesh)
        if item.code == code
    ]


@pytest.mark.parametrize(
    ("controller", "is_found"),
    [
        (CONTROLLER_NAME, False),
        ("meshwright.dev/gateway-controler", True),
        ("meshwright.dev/mesh-controller", True),
        ("meshwrigth.dev/gateway-controller", True),
        ("meshwright.io/gateway-controller", True),
        ("istio.io/gateway-controller", False),
        ("gateway.envoyproxy.io/gatewayclass-controller", False),
        ("gateway.nginx.org/nginx-gateway-controller", False),
        ("io.cilium/gateway-controller", False),
        ("traefik.io/gateway-controller", False),
    ],
)
def test_controller_name_like_ours_is_a_warning(controller: str, *, is_found: bool) -> None:
    """The domain counts, because most controllers have the same path."""
    wanted = (
        f"Meshwright does not serve the Gateways of this class (did you mean {CONTROLLER_NAME}?). "
        "Correct the controllerName."
    )
    expected = ("warning", "GatewayClass edge", "spec.controllerName", controller, wanted)
    assert found(g.view(GatewayClass("edge", controller)), "MW2189") == ([expected] if is_found else [])


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (
            (GatewayClass("meshwright", "meshwright.dev/gateway-controler"),),
            (
                "is of GatewayClass meshwright with the controllerName meshwright.dev/gateway-controler: a "
                "gateway of Meshwright needs meshwright.dev/gateway-controller, so this workload serves "
                "nothing. Correct spec.controllerName of the GatewayClass, or spec.gatewayClassName of the "
                "Gateway."
            ),
        ),
        (
            (GatewayClass("meshwrihgt", CONTROLLER_NAME),),
            (
                "is of GatewayClass meshwright, which does not exist (did you mean meshwrihgt?); there is "
                "the GatewayClass meshwrihgt, so this workload serves nothing. Correct "
                "spec.gatewayClassName of the Gateway, or create the GatewayClass."
            ),
        ),
    ],
)
def test_workload_of_a_gateway_with_a_wrong_class_names_class_and_value(
    classes: tuple[GatewayClass, ...], why: str
) -> None:
    """The value, and the right one."""
    mesh = g.view(serving(), g.gateway("edge"), *classes)
    wanted = ("error", "Workload default/edge", "spec.gateway", "edge", f"Gateway default/edge {why}")
    assert found(mesh, "MW2180") == [wanted]


def test_workload_with_the_gateway_of_another_namespace_hears_which_one_it_serves() -> None:
    """A Workload names a Gateway of its own namespace."""
    mesh = g.view(serving(), g.gateway("edge", namespace="shop"), g.CLASS)
    wanted = (
        "Gateway default/edge does not exist (did you mean shop/edge?), so this workload serves nothing. A "
        "workload serves a Gateway of its own namespace: correct the name, or create the Gateway."
    )
    assert found(mesh, "MW2180") == [("error", "Workload default/edge", "spec.gateway", "edge", wanted)]


@pytest.mark.parametrize(
    ("class_name", "advice"),
    [
        ("meshwrigth", " (did you mean meshwright?). Correct the name."),
        ("edge", ". Create a GatewayClass with the controllerName `meshwright.dev/gateway-controller`."),
    ],
)
def test_advice_for_a_missing_class_fits_its_name(class_name: str, advice: str) -> None:
    """A similar class is a misspelling, and without one the class is missing."""
    mesh = g.view(g.CLASS, g.gateway("edge", class_name=class_name))
    wanted = f"This GatewayClass does not exist, so the Gateway is not served{advice}"
    assert found(mesh, "MW2177") == [
        ("error", "Gateway default/edge", "spec.gatewayClassName", class_name, wanted)
    ]
