"""Tests of the Gateway API's readers and a real API server with its definitions: both refuse the same."""

import asyncio
import copy
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from meshwright.cli.offline import reference
from meshwright.mesh.gateway.gateways import Gateway, GatewayClass, Listener
from meshwright.mesh.gateway.routes import TLSRoute
from meshwright.mesh.kinds import GATEWAY, GATEWAY_API, GATEWAY_CLASS, TLS_ROUTE
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import MeshObject, ObjectKey
from meshwright.mesh.origins import InCluster
from meshwright.specs.manifest import split_api_version
from meshwright.specs.reader import read
from meshwright.specs.reference.shapes import DescribedKind
from tests.kubernetes.gateway.conftest import LATER
from tests.kubernetes.reading.test_source import looking
from tests.kubernetes.tools import objects
from tests.kubernetes.tools.api_requests import DRY, Asking, established, path
from tests.kubernetes.tools.gateway_definitions import definition
from tests.unit.specs.gateway.manifests import IN_FILE, manifest
from tests.unit.specs.gateway.test_backend_tls import ACCEPTED as ACCEPTED_POLICIES
from tests.unit.specs.gateway.test_backend_tls import REFUSED as REFUSED_POLICIES
from tests.unit.specs.gateway.test_gateway_refusals import (
    ACCEPTED_CLASSES,
    ACCEPTED_FIELDS,
    ACCEPTED_LISTENERS,
    ACCEPTED_SETS,
    HTTP,
    REFUSED_CLASSES,
    REFUSED_FIELDS,
    REFUSED_LISTENERS,
    REFUSED_SETS,
    set_with_listeners,
    set_with_parent,
    with_fields,
    with_listeners,
)
from tests.unit.specs.gateway.test_refusals import ACCEPTED, REFUSED, REFUSED_GRPC
from tests.unit.specs.reference.test_schema import _probed
from tools.real_parts.cluster import RunningCluster

IS_LONG = os.environ.get("MESHWRIGHT_SOAK") == "long"
STEP = 1 if IS_LONG else 19
DESCRIBED = [item for item in reference.described() if item.kind.group == GATEWAY_API]
IN_CLUSTER = InCluster("here", "1")


def _disagreements(asking: Asking, documents: list[dict[str, Any]]) -> list[str]:
    """Send documents for a dry run; return those about which the API server and the reader disagree."""
    with ThreadPoolExecutor(4) as threads:
        answers = [*threads.map(lambda item: asking.create(item, DRY), documents)]
    result = []
    for document, answer in zip(documents, answers, strict=True):
        assert answer.status in (201, 400, 422), answer.message
        reading = read(document, IN_FILE)
        if (answer.status == 201) != bool(reading.objects):
            said = answer.message or "; ".join(map(str, reading.problems))
            result.append(f"{answer.status}: {said[:400]} {document['spec']}"[:800])
        if answer.status == 201 and not read(document, IN_CLUSTER).objects:
            result.append(f"not read from a cluster: {document['spec']}")
    return result


async def test_kind_is_watched_once_it_is_defined_and_in_its_newest_version(
    own_cluster: RunningCluster, asking: Asking
) -> None:
    """The source runs before the definition exists; a newer definition loses no object of the older one."""
    older = objects.definition(GATEWAY_API, LATER, "TLSRoute", "v1alpha2")
    route = {
        **objects.gateway_route("TLSRoute", "older"),
        "apiVersion": f"{GATEWAY_API}/v1alpha2",
        "metadata": {"name": "older", "namespace": "shop"},
    }
    key = ObjectKey(TLS_ROUTE, Namespace("shop"), "older")
    async with looking(own_cluster, "shop") as look:
        assert key not in look.source.objects()
        await asyncio.to_thread(established, asking, older)
        assert asking.create(route).status == 201
        await look.until(lambda: key in look.source.objects())
        await asyncio.to_thread(established, asking, definition(LATER))
        newer = {"spec": {"hostnames": ["db.shop.example"]}}
        answer = asking("PATCH", path(route, f"{GATEWAY_API}/v1"), newer, "application/merge-patch+json")
        assert answer.status == 200, answer.message
        await look.until(lambda: _hostnames(look.source.objects()[key].value) == ("db.shop.example",))
        assert look.source.problems() == ()


async def test_class_of_a_cluster_is_read_beside_the_gateways_of_one_namespace(
    own_cluster: RunningCluster, asking: Asking
) -> None:
    """A class has no namespace, so it is read for any choice of namespaces."""
    documents = [manifest("GatewayClass", "{controllerName: example.com/edge}"), with_listeners(HTTP)]
    gateway_class, gateway = map(_placed, documents)
    keys = [ObjectKey(GATEWAY_CLASS, Namespace(""), "r"), ObjectKey(GATEWAY, Namespace("shop"), "r")]
    async with looking(own_cluster, "shop") as look:
        for document in (gateway_class, gateway):
            assert asking.create(document).status == 201
        await look.until(lambda: look.source.objects().keys() >= {*keys})
        found = [look.source.objects()[key].value for key in keys]
        assert found[0] == GatewayClass("r", "example.com/edge", generation=1)
        assert isinstance(found[1], Gateway)
        assert found[1].listeners == (Listener("http", Port(80), "HTTP"),)
        assert look.source.problems() == ()
        for document in (gateway_class, gateway):
            assert asking("DELETE", path(document)).status == 200
        await look.until(lambda: look.source.objects().keys().isdisjoint(keys))


def _hostnames(value: MeshObject) -> tuple[str, ...]:
    assert isinstance(value, TLSRoute)
    return value.hostnames


@pytest.mark.parametrize("described", DESCRIBED, ids=lambda item: str(item.kind))
def test_api_server_and_reader_refuse_the_same_values(asking: Asking, described: DescribedKind) -> None:
    """Each value of each example is replaced by one of another type, out of range, null or absent.

    The short form sends a part of the probes; `make test-definitions` sends all of them.
    """
    documents = [
        copy.deepcopy(document)
        for number, (document, place, _) in enumerate(_probed(described))
        if place.startswith("spec") and number % STEP == 0 and _is_served(document)
    ]
    assert documents
    established(asking, definition(LATER))
    assert _disagreements(asking, documents) == []


def _is_served(document: dict[str, Any]) -> bool:
    """Return whether the standard channel serves the document's version."""
    return split_api_version(document["apiVersion"])[1] in ("v1", "v1beta1")


def test_api_server_and_reader_refuse_the_same_rules(asking: Asking) -> None:
    """The rules are those that the readers' own tests have taken from the definitions."""
    rules = [("HTTPRoute", rule) for rule, _ in REFUSED]
    rules += [("HTTPRoute", rule) for rule in ACCEPTED]
    rules += [("GRPCRoute", rule) for rule, _ in REFUSED_GRPC]
    documents = [manifest(kind, f"{{rules: [{{{rule}}}]}}") for kind, rule in rules]
    assert _disagreements(asking, documents) == []


def test_api_server_and_reader_refuse_the_same_gateways(asking: Asking) -> None:
    """The gateways, classes and sets are those of the readers' own tests; half of them are refused."""
    documents = [
        *(with_listeners(listeners) for listeners, _ in REFUSED_LISTENERS),
        *map(with_listeners, ACCEPTED_LISTENERS),
        *(with_fields(fields) for fields, _ in REFUSED_FIELDS),
        *map(with_fields, ACCEPTED_FIELDS),
        *(manifest("GatewayClass", spec) for spec, _ in REFUSED_CLASSES),
        *(manifest("GatewayClass", spec) for spec in ACCEPTED_CLASSES),
        *(set_with_listeners(listeners) for listeners, _ in REFUSED_LISTENERS),
        *map(set_with_listeners, ACCEPTED_LISTENERS),
        *(set_with_parent(parent) for parent, _ in REFUSED_SETS),
        *map(set_with_parent, ACCEPTED_SETS),
    ]
    assert _disagreements(asking, [_placed(document) for document in documents]) == []


def test_api_server_and_reader_refuse_the_same_policies(asking: Asking) -> None:
    """The BackendTLSPolicies of the reader's own tests; the standard channel serves v1 alone."""
    specs = [*(spec for spec, _ in REFUSED_POLICIES), *ACCEPTED_POLICIES]
    documents = [manifest("BackendTLSPolicy", spec) for spec in specs]
    assert _disagreements(asking, documents) == []


def _placed(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without a namespace, if its kind is cluster-wide."""
    if document["kind"] == GATEWAY_CLASS.name:
        document["metadata"].pop("namespace", None)
    return document
