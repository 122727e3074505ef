"""Hints for references and values that are nearly right: Services, Secrets, grants and protocols."""

import pytest

import catalog.lint.problems
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.gateway.routes import GrantedFrom, GrantedTo, ReferenceGrant
from meshwright.mesh.gateway.rules import Rule
from meshwright.mesh.kinds import GATEWAY, GRPC_ROUTE, HTTP_ROUTE, SECRET, SERVICE, Kind
from meshwright.mesh.names import Namespace
from tests.meshes import gateway as g
from tests.meshes import values as a
from tests.unit.catalog.lint.gateway.test_gateways import serving

WEB = a.service("web", address="10.1.0.2")
MESH = (WEB, a.workload("web", "10.0.0.2"), serving(), g.CLASS, MeshConfig(permissive=True))


def texts(mesh: View, code: str) -> list[str]:
    """Return the texts of the problems with a code."""
    return [item.expected for item in catalog.lint.problems.problems(mesh) if item.code == code]


def grant(home: str, source: Kind, namespace: str, target: Kind, name: str | None = None) -> ReferenceGrant:
    """Make a grant of one source and one target."""
    sources = (GrantedFrom(source, Namespace(namespace)),)
    return ReferenceGrant(a.policy_key("allow", home), sources, (GrantedTo(target, name),))


@pytest.mark.parametrize(
    ("backend", "hint"),
    [("webb", " (did you mean web?)"), ("database", "")],
)
def test_missing_service_of_a_route_has_a_hint(backend: str, hint: str) -> None:
    """At a Service as parent and at a Gateway."""
    for parent in (g.parent("web", port=80), g.at("edge")):
        route = g.http_route("route", Rule(backends=(g.to(backend),)), parents=(parent,))
        assert texts(g.view(*MESH, g.gateway("edge"), route), "MW2171") == [
            (
                f"The reference leads nowhere (BackendNotFound): Service default/{backend} does not "
                f"exist{hint}. Its share of the requests is answered with an error, and copies are not made. "
                "Correct the reference, or create the Service."
            )
        ]


@pytest.mark.parametrize(("name", "hint"), [("crt", " (did you mean cert?)"), ("books", "")])
def test_missing_secret_of_a_listener_has_a_hint(name: str, hint: str) -> None:
    """Names of Secrets of another namespace are not suggested, even where a grant permits references."""
    mesh = g.view(*MESH, g.gateway("edge", g.https("https", "", name)), g.tls_secret())
    start = (
        f"A certificate cannot be shown (InvalidCertificateRef): Secret default/{name} does not exist, or "
    )
    end = "Correct the reference, the Secret or the ReferenceGrant."
    assert texts(mesh, "MW2185") == [f"{start}cannot be read{hint}. {end}"]
    far = g.view(
        *MESH,
        g.gateway("edge", g.https("https", "", name, namespace="certs")),
        g.tls_secret(namespace="certs"),
        grant("certs", GATEWAY, "default", SECRET),
    )
    (text,) = texts(far, "MW2185")
    assert "did you mean" not in text


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (
            grant("certs", HTTP_ROUTE, "default", SECRET),
            (
                "ReferenceGrant certs/allow is for HTTPRoutes of namespace default, and not for Gateways of "
                "namespace default. "
            ),
        ),
        (
            grant("certs", GATEWAY, "shop", SECRET),
            (
                "ReferenceGrant certs/allow is for Gateways of namespace shop, and not for Gateways of "
                "namespace default. "
            ),
        ),
        (
            grant("default", GATEWAY, "default", SECRET),
            (
                "ReferenceGrant default/allow permits references into its own namespace alone: its namespace "
                "must be certs. "
            ),
        ),
        (
            grant("certs", GATEWAY, "default", SECRET, "other"),
            "ReferenceGrant certs/allow permits references to Secret other, and not to Secret certs/cert. ",
        ),
        (
            grant("certs", GATEWAY, "default", SERVICE),
            "ReferenceGrant certs/allow permits references to Services, and not to Secret certs/cert. ",
        ),
        (grant("certs", HTTP_ROUTE, "shop", SECRET), ""),
        (grant("default", HTTP_ROUTE, "default", SECRET), ""),
    ],
)
def test_grant_that_nearly_permits_a_certificate_is_named(given: ReferenceGrant, hint: str) -> None:
    """A grant with more than one mistake is for something else."""
    gateway = g.gateway("edge", g.https("https", "", "cert", namespace="certs"))
    assert texts(g.view(*MESH, gateway, given), "MW2185") == [
        (
            "A certificate cannot be shown (RefNotPermitted): Gateways of default may refer to Secret "
            f"certs/cert only with a ReferenceGrant in certs. {hint}Correct the reference, the Secret or the "
            "ReferenceGrant."
        )
    ]


def test_grant_that_nearly_permits_a_backend_is_named() -> None:
    """The kind of the route counts."""
    backend = g.to("web", namespace="far")
    route = g.http_route("route", Rule(backends=(backend,)), parents=(g.at("edge"),))
    given = grant("far", GRPC_ROUTE, "default", SERVICE)
    assert texts(g.view(*MESH, g.gateway("edge"), route, given), "MW2171") == [
        (
            "The reference leads nowhere (RefNotPermitted): no ReferenceGrant of namespace far lets "
            "HTTPRoutes of namespace default refer to Service far/web. ReferenceGrant far/allow is for "
            "GRPCRoutes of namespace default, and not for HTTPRoutes of namespace default. Its share of the "
            "requests is answered with an error, and copies are not made. Correct the reference, or correct "
            "the ReferenceGrant."
        )
    ]


@pytest.mark.parametrize(
    ("protocol", "hint"),
    [("https", " (did you mean HTTPS?)"), ("Http", " (did you mean HTTP?)"), ("UDP", "")],
)
def test_protocol_in_another_case_has_a_hint(protocol: str, hint: str) -> None:
    """The API server accepts every text."""
    assert texts(g.view(*MESH, g.gateway("edge", g.listener(protocol=protocol))), "MW2178") == [
        (
            f"The listener is not in force (UnsupportedProtocol): protocol {protocol} is not served{hint}; "
            "listeners may have the protocol HTTP, HTTPS, TCP, TLS. Routes get no requests from the "
            "listener. Change or delete the listener."
        )
    ]


def test_missing_parents_have_a_hint() -> None:
    """A Service, and a listener of a Gateway."""
    parents = (g.parent("weg", port=80), g.at("edge", "htpp"))
    route = g.http_route("route", Rule(backends=(g.to("web"),)), parents=parents)
    refused = "The route is not in force at this parent (NoMatchingParent): "
    assert texts(g.view(*MESH, g.gateway("edge"), route), "MW2170") == [
        (
            f"{refused}Service default/weg does not exist, or is of type ExternalName (did you mean web?). "
            "Correct the reference, or the Service."
        ),
        (
            f"{refused}Gateway default/edge lacks a listener named htpp (did you mean http?). Correct the "
            "reference or the route, or allow the route at a listener."
        ),
    ]
