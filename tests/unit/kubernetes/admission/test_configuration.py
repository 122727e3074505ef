"""Tests of the configuration of the admission webhook in a cluster."""

import base64
import copy
from typing import Any

import pytest

from meshwright.kubernetes.admission.configuration import configuration, home_of, is_as, is_of_a_control_plane
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.injection.webhook.registration import configuration as injection
from meshwright.mesh.kinds import UDP_ROUTE
from meshwright.providers.kubernetes.scope import Scope
from meshwright.specs.kinds import READ

SERVICE = Place.parse("mesh-system/meshwright")


@pytest.mark.parametrize(
    ("text", "host", "config"),
    [
        (
            "mesh-system/meshwright",
            "meshwright.mesh-system.svc",
            {"service": {"namespace": "mesh-system", "name": "meshwright", "port": 443, "path": "/validate"}},
        ),
        (
            "a/b:9443",
            "b.a.svc",
            {"service": {"namespace": "a", "name": "b", "port": 9443, "path": "/validate"}},
        ),
        ("https://10.0.0.5:9443", "10.0.0.5", {"url": "https://10.0.0.5:9443/validate"}),
        ("https://mesh.example.com/", "mesh.example.com", {"url": "https://mesh.example.com/validate"}),
        ("https://[fd00::7]:1", "fd00::7", {"url": "https://[fd00::7]:1/validate"}),
    ],
)
def test_place_is_a_service_or_a_url(text: str, host: str, config: object) -> None:
    """The host of the place is the name in the webhook's certificate."""
    place = Place.parse(text)
    assert (place.host, place.client_config()) == (host, config)


@pytest.mark.parametrize(
    "text",
    [
        *("", "mesh", "a/b/c", "A/b", "a/b:0", "a/b:70000", "http://a:1", "https://", "https://a:x"),
        *("https://u@a", "https://a/path", "https://a?x=1", "https://a#x", "ftp://a"),
    ],
)
def test_malformed_place_is_refused(text: str) -> None:
    """The error shows both valid forms."""
    with pytest.raises(ValueError, match=r"must be NAMESPACE/SERVICE or NAMESPACE/SERVICE:PORT .*or a URL"):
        Place.parse(text)


PLURALS = {
    "BackendTLSPolicy": "backendtlspolicies",
    "Egress": "egresses",
    "MutualTLS": "mutualtlses",
    "ExternalAuthorization": "externalauthorizations",
    "Retry": "retries",
    "Telemetry": "telemetries",
    "ExtensionService": "extensionservices",
    "RoutePolicy": "routepolicies",
    "UpstreamPolicy": "upstreampolicies",
    "ClientTrafficPolicy": "clienttrafficpolicies",
    "GatewayClass": "gatewayclasses",
}
"""As OSM's definitions have them, and ours."""


def test_webhook_covers_all_policy_kinds_services_and_namespaces() -> None:
    """Each kind is listed with every version that the server reads.

    For another version, the API server converts the object or does not ask.
    """
    (webhook,) = configuration(SERVICE, b"roots")["webhooks"]
    asked = {
        (group, resource): tuple(rule["apiVersions"])
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    policy = {kind for kind in READ if kind.group not in ("", "apps", "batch", "discovery.k8s.io")} - {
        UDP_ROUTE
    }
    expected = {
        (kind.group, PLURALS.get(kind.name, f"{kind.name.lower()}s")): READ[kind].versions for kind in policy
    }
    assert asked == expected | {("", "services"): ("v1",), ("", "namespaces"): ("v1",)}


def test_rule_has_the_scope_of_its_kinds() -> None:
    """A rule for namespaced objects would never be asked about a GatewayClass."""
    (webhook,) = configuration(SERVICE, b"roots")["webhooks"]
    wide = [rule["resources"] for rule in webhook["rules"] if rule["scope"] == "Cluster"]
    assert wide == [["gatewayclasses"], ["namespaces"]]


def test_webhook_has_a_short_timeout_and_ignores_failures() -> None:
    """An unavailable webhook must neither delay nor refuse objects.

    Kubernetes' own namespaces are excluded.
    """
    (webhook,) = configuration(SERVICE, b"roots")["webhooks"]
    assert (webhook["failurePolicy"], webhook["timeoutSeconds"], webhook["sideEffects"]) == (
        "Ignore",
        5,
        "None",
    )
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == b"roots"
    (kept_out,) = webhook["namespaceSelector"]["matchExpressions"]
    assert (kept_out["operator"], "kube-system" in kept_out["values"]) == ("NotIn", True)


def test_webhook_covers_the_namespaces_of_the_mesh() -> None:
    """The list of namespaces and the label selector become matchExpressions of the API."""
    scope = Scope.from_settings(("b", "a"), "openservicemesh.io/monitored-by=osm,tier notin (x,y),mesh,!old")
    (webhook,) = configuration(SERVICE, b"", scope.expressions())["webhooks"]
    _, named, ignored, *labels = webhook["namespaceSelector"]["matchExpressions"]
    assert named == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}
    assert ignored == {"key": "openservicemesh.io/ignore", "operator": "DoesNotExist"}
    assert labels == [
        {"key": "openservicemesh.io/monitored-by", "operator": "In", "values": ["osm"]},
        {"key": "tier", "operator": "NotIn", "values": ["x", "y"]},
        {"key": "mesh", "operator": "Exists"},
        {"key": "old", "operator": "DoesNotExist"},
    ]


def test_mesh_config_at_home_is_covered_outside_the_meshs_namespaces() -> None:
    """The home's MeshConfig has a webhook of its own.

    The other webhooks exclude it, so that no object is reviewed twice.
    """
    scope = Scope.from_settings(("shop", "home"), "team=a", "home")
    policy, of_mesh, at_home = configuration(SERVICE, b"", scope.expressions(), "home")["webhooks"]
    plain = configuration(SERVICE, b"", scope.expressions())["webhooks"][0]
    assert policy["namespaceSelector"] == plain["namespaceSelector"]
    asked = [(*rule["apiGroups"], *rule["resources"]) for rule in policy["rules"]]
    (settings,) = at_home["rules"]
    assert settings in plain["rules"]
    assert settings == of_mesh["rules"][0]
    assert (*settings["apiGroups"], *settings["resources"]) == ("config.openservicemesh.io", "meshconfigs")
    assert len(asked) == len(plain["rules"]) - 1
    named = {"key": "kubernetes.io/metadata.name", "values": ["home"]}
    assert at_home["namespaceSelector"]["matchExpressions"] == [named | {"operator": "In"}]
    assert of_mesh["namespaceSelector"]["matchExpressions"] == [
        *plain["namespaceSelector"]["matchExpressions"],
        named | {"operator": "NotIn"},
    ]


@pytest.mark.parametrize(("revision", "name"), [("", "meshwright"), ("canary", "meshwright-canary")])
def test_each_revision_has_its_own_name_and_label(revision: str, name: str) -> None:
    """Both webhook configurations of a revision have the same name and labels.

    `meshwright check` finds them by these.
    """
    result = configuration(SERVICE, b"roots", home="mesh-system", revision=revision)
    assert result["metadata"] == {
        "name": name,
        "labels": {
            "app.kubernetes.io/name": "meshwright",
            "meshwright.dev/control-plane": "mesh-system",
            "meshwright.dev/revision": revision,
        },
    }
    pods = injection(SERVICE.client_config(), b"roots", "mesh-system", revision=revision)
    assert pods["metadata"] == result["metadata"]
    assert (is_of_a_control_plane(result), home_of(dict(result))) == (True, "mesh-system")


def _changed(path: tuple[Any, ...], value: object) -> Any:
    whole: Any = copy.deepcopy(dict(configuration(SERVICE, b"roots")))
    at = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return whole


def test_additions_of_the_api_server_and_of_others_are_no_difference() -> None:
    """Defaults, further labels and webhooks with other names are ignored, in any order."""
    wanted: Any = dict(configuration(SERVICE, b"roots"))
    result = copy.deepcopy(wanted)
    assert is_as(result, wanted)
    result["webhooks"][0]["objectSelector"] = {}
    result["metadata"]["labels"]["mine"] = "x"
    result["webhooks"].insert(0, {"name": "another"})
    assert is_as(result, wanted)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("webhooks", 0, "failurePolicy"), "Fail"),
        (("webhooks", 0, "clientConfig", "caBundle"), "b3RoZXI="),
        (("webhooks", 0, "rules"), []),
        (("webhooks", 0, "rules", 0, "operations"), ["CREATE"]),
        (("webhooks",), []),
        (("webhooks",), None),
        (("metadata", "labels"), None),
    ],
)
def test_changed_or_missing_configuration_is_a_difference(path: tuple[Any, ...], value: object) -> None:
    """A changed field, a removed webhook and a missing configuration are all detected."""
    wanted = dict(configuration(SERVICE, b"roots"))
    assert not is_as(_changed(path, value), wanted)
    assert not is_as(None, wanted)
