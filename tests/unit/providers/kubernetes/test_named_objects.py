"""Tests of Secrets in a cluster: each is read by its name, if a gateway of Meshwright names it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from meshwright.kube.builtin import CONFIG_MAPS, SECRETS
from meshwright.kube.reflector.object_cache import Item
from meshwright.kube.resource import Resource
from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.gateway.gateways import CONTROLLER_NAME, RoutesFrom
from meshwright.mesh.gateway.secrets import TlsSecret
from meshwright.mesh.kinds import (
    BACKEND_TLS_POLICY,
    CONFIG_MAP,
    GATEWAY,
    GATEWAY_API,
    NAMESPACE,
    SECRET,
    Kind,
)
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.providers.kubernetes import last_state
from meshwright.providers.kubernetes.last_state import SavedState
from meshwright.providers.kubernetes.named_objects import objects_named
from meshwright.providers.kubernetes.resources import CORE
from meshwright.providers.kubernetes.scope import Scope
from meshwright.providers.objects import Form
from tests.meshes import gateway as g
from tests.tools.tls_secrets import EdgePair, self_signed
from tests.unit.providers.kubernetes import objects
from tests.unit.providers.kubernetes.cluster import Cluster
from tests.unit.providers.kubernetes.test_source import Running, at_work

CLASSES = Resource(GATEWAY_API, "v1", "gatewayclasses", "GatewayClass", namespaced=False)
GATEWAYS = Resource(GATEWAY_API, "v1", GATEWAY.name.lower() + "s", GATEWAY.name)
POLICIES = Resource(GATEWAY_API, "v1", "backendtlspolicies", BACKEND_TLS_POLICY.name)
PATH = "/api/v1/namespaces/shop/secrets"
SHOWN = ObjectKey(SECRET, Namespace("shop"), "shown")


def gateway(*secrets: str, class_name: str = "meshwright", **more: str) -> dict[str, Any]:
    """Return a Gateway whose HTTPS listener has these Secrets."""
    tls = {"certificateRefs": [{"name": name, **more} for name in secrets]}
    listeners = [{"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}]
    return {
        "metadata": {"name": "public", "namespace": "shop"},
        "spec": {"gatewayClassName": class_name, "listeners": listeners},
    }


def gateway_class(name: str, controller: str) -> dict[str, Any]:
    """Return a GatewayClass."""
    return {"metadata": {"name": name}, "spec": {"controllerName": controller}}


def written(pair: EdgePair, name: str = "shown", namespace: str = "shop") -> dict[str, Any]:
    """Return the Secret of a pair."""
    result: dict[str, Any] = yaml.safe_load(pair.manifest(name, namespace))
    return result


def authorities(name: str, pem: str | None) -> dict[str, Any]:
    """Return a ConfigMap with CA certificates, or one without the entry."""
    data = {"other": "text"} if pem is None else {"ca.crt": pem}
    return {"metadata": {"name": name, "namespace": "shop"}, "data": data}


def shown(running: Running, key: ObjectKey = SHOWN) -> bytes | None:
    """Return the certificates of a Secret, None without the Secret."""
    found = running.source.objects().get(key)
    if found is None:
        return None
    assert isinstance(found.value, TlsSecret)
    return found.value.chain_pem


def asked(cluster: Cluster) -> list[str]:
    """Return the paths of the requests for Secrets."""
    return sorted({path for path in cluster.asked if "secrets" in path})


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    """Run a cluster with a gateway, its Secret, and a Secret without a gateway."""
    result = Cluster(CLASSES, GATEWAYS, SECRETS)
    for name in ("shop", "books"):
        result.put(CORE[NAMESPACE], objects.namespace(name, team=name))
    result.put(CLASSES, gateway_class("meshwright", CONTROLLER_NAME))
    result.put(GATEWAYS, gateway("shown"))
    result.put(SECRETS, written(self_signed("other.example"), "other"))
    await result.start()
    yield result
    await result.stop()


async def test_secrets_are_there_at_the_start_and_follow_their_changes(cluster: Cluster) -> None:
    """A start without the certificate would take the listener from its proxies for a moment."""
    first, second = self_signed("a.example"), self_signed("b.example")
    cluster.put(SECRETS, written(first))
    async with at_work(cluster) as running:
        assert shown(running) == first.chain
        assert asked(cluster) == [PATH]
        assert ObjectKey(SECRET, Namespace("shop"), "other") not in running.source.objects()
        cluster.put(SECRETS, written(second))
        await running.until(lambda: shown(running) == second.chain)
        cluster.delete(SECRETS, "shown")
        await running.until(lambda: shown(running) is None)
        assert running.codes == []


async def test_only_named_secrets_are_requested(cluster: Cluster) -> None:
    """The watch begins with the gateway's reference, and ends with it."""
    pair = self_signed("a.example")
    cluster.put(SECRETS, written(pair))
    cluster.put(GATEWAYS, gateway("shown", class_name="another"))
    cluster.put(CLASSES, gateway_class("another", "example.com/another"))
    async with at_work(cluster) as running:
        assert asked(cluster) == []
        cluster.put(GATEWAYS, gateway("shown"))
        await running.until(lambda: shown(running) == pair.chain)
        cluster.put(GATEWAYS, gateway("missing"))
        await running.until(lambda: shown(running) is None)
        cluster.put(GATEWAYS, gateway("shown"))
        await running.until(lambda: shown(running) == pair.chain)
        cluster.delete(CLASSES, "meshwright")
        await running.until(lambda: shown(running) is None)


async def test_forbidden_secret_is_a_problem_that_ends_with_the_permission(cluster: Cluster) -> None:
    """The start does not wait for it, and nothing else suffers."""
    pair = self_signed("a.example")
    cluster.put(SECRETS, written(pair))
    cluster.forbidden = {"secrets"}
    async with asyncio.timeout(5), at_work(cluster) as running:
        assert ObjectKey(GATEWAY, Namespace("shop"), "public") in running.source.objects()
        (problem,) = running.source.problems()
        assert (problem.code, str(problem.origin)) == ("MW1113", "kubernetes (secrets shown in shop)")
        assert "permit `list` and `watch` by a Role of this namespace" in problem.expected
        cluster.forbidden = set()
        await running.until(lambda: shown(running) == pair.chain and not running.codes)


async def test_secrets_of_namespaces_outside_the_mesh_are_not_in_force(cluster: Cluster) -> None:
    """They are as soon as the namespace enters the mesh."""
    pair, key = self_signed("a.example"), ObjectKey(SECRET, Namespace("books"), "shown")
    cluster.put(SECRETS, written(pair, namespace="books"))
    cluster.put(GATEWAYS, gateway("shown", namespace="books"))
    scope = Scope.from_settings(labels="team=shop")
    async with at_work(cluster, scope) as running:
        assert shown(running, key) is None
        cluster.put(CORE[NAMESPACE], objects.namespace("books", team="shop"))
        await running.until(lambda: shown(running, key) == pair.chain)


def test_stored_texts_are_in_no_repr() -> None:
    """A Secret of a cluster is stored as text until it is changed."""
    assert "a text" not in f"{Item('1', 'a text')!r} {Form('a text', (), ())!r}"


async def test_secrets_are_not_saved(cluster: Cluster) -> None:
    """Neither the key nor the certificate is in the state for the next run."""
    pair = self_signed("a.example")
    cluster.put(SECRETS, written(pair))
    kept: list[SavedState] = []
    async with at_work(cluster, keep=kept.append) as running:
        assert shown(running) == pair.chain
    text = last_state.written(kept[-1])
    assert "gatewayclasses" in str(text)
    assert all(str(value) not in str(text) for value in written(pair)["data"].values())


def test_client_certificate_of_a_gateway_is_named() -> None:
    """An object of another kind is never requested as a Secret."""
    edge, other = g.gateway("edge"), g.gateway("other")
    bad = g.with_client_certificate(other, kind=Kind("Vault", "x.y"))
    view = g.view(g.CLASS, g.with_client_certificate(edge, namespace="certs"), bad)
    named = objects_named(dict(view.sourced.values_unrecorded()))
    assert named == {ObjectKey(SECRET, Namespace("certs"), "client")}


def test_ca_certificates_for_the_clients_of_a_gateway_are_named() -> None:
    """Those of all ports and of single ones."""
    edge = g.with_validation(
        g.gateway("edge"), g.validation(), at_1=g.validation("far", namespace="certs"), at_2=None
    )
    bad = g.with_validation(g.gateway("bad"), g.validation("vault", kind=Kind("Vault", "x.y")))
    named = objects_named(dict(g.view(g.CLASS, edge, bad).sourced.values_unrecorded()))
    assert named == {
        ObjectKey(CONFIG_MAP, Namespace("default"), "ca"),
        ObjectKey(CONFIG_MAP, Namespace("certs"), "far"),
    }


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (RoutesFrom.NONE, {"own"}),
        (RoutesFrom.SAME, {"own", "near"}),
        (RoutesFrom.SELECTOR, {"own", "near", "far"}),
        (RoutesFrom.ALL, {"own", "near", "far"}),
    ],
)
def test_secrets_of_sets_are_named_if_the_gateway_may_allow_the_sets(
    sets: RoutesFrom, expected: set[str]
) -> None:
    """Nobody can have Secrets of a namespace requested by a ListenerSet that attaches nowhere."""
    view = g.view(
        g.CLASS,
        g.open_gateway("edge", g.https("https", "", "own"), sets=sets),
        g.listener_set("near", g.https("https", "", "near")),
        g.listener_set("far", g.https("https", "", "far"), at="default", namespace="far"),
        g.listener_set("lost", g.https("https", "", "lost"), gateway="missing"),
    )
    named = objects_named(dict(view.sourced.values_unrecorded()))
    places = {name: Namespace("far" if name == "far" else "default") for name in expected}
    assert named == {ObjectKey(SECRET, place, name) for name, place in places.items()}


def policy(config_map: str) -> dict[str, Any]:
    """Return a BackendTLSPolicy with this ConfigMap."""
    authority = {"group": "", "kind": "ConfigMap", "name": config_map}
    target = {"group": "", "kind": "Service", "name": "web"}
    validation = {"hostname": "web.example", "caCertificateRefs": [authority]}
    return {
        "metadata": {"name": "tls", "namespace": "shop"},
        "spec": {"targetRefs": [target], "validation": validation},
    }


async def test_config_maps_of_policies_are_watched_by_name(cluster: Cluster) -> None:
    """Their changes are followed, others are never requested, and a missing permission is a problem."""
    cluster.served += [POLICIES, CONFIG_MAPS]
    key = ObjectKey(CONFIG_MAP, Namespace("shop"), "ca")
    first, second = self_signed("a.example").chain.decode(), self_signed("b.example").chain.decode()
    cluster.put(POLICIES, policy("ca"))
    cluster.put(CONFIG_MAPS, authorities("other", first))
    cluster.forbidden = {"configmaps"}
    async with at_work(cluster) as running:

        def pem() -> str | None:
            found = running.source.objects().get(key)
            return found.value.pem if found is not None and isinstance(found.value, CaBundle) else None

        (problem,) = running.source.problems()
        assert str(problem.origin) == "kubernetes (configmaps ca in shop)"
        assert "gateways need these CA certificates" in problem.expected
        cluster.put(CONFIG_MAPS, authorities("ca", first))
        cluster.forbidden = set()
        await running.until(lambda: pem() == first and not running.codes)
        cluster.put(CONFIG_MAPS, authorities("ca", second))
        await running.until(lambda: pem() == second)
        cluster.put(CONFIG_MAPS, authorities("ca", None))
        await running.until(lambda: pem() is None)
        assert {path for path in cluster.asked if "configmaps" in path} == {
            "/api/v1/namespaces/shop/configmaps"
        }
        assert ObjectKey(CONFIG_MAP, Namespace("shop"), "other") not in running.source.objects()


def test_config_maps_are_not_named_without_a_gateway() -> None:
    """Gateways of other controllers need none from here."""
    view = g.view(g.FOREIGN_CLASS, g.gateway("edge", class_name="other"), g.backend_policy())
    assert objects_named(dict(view.sourced.values_unrecorded())) == frozenset()
