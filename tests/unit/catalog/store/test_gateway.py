"""Tests of the tables of gateways and their classes, and of the indexes that find gateways and workloads."""

from dataclasses import replace

from catalog.store.edits import Edits
from catalog.store.gateway import gateway_classes, gateways, workloads_by_gateway
from catalog.store.view import MeshSettings, View
from meshwright.mesh.gateway.gateways import (
    CONTROLLER_NAME,
    Gateway,
    GatewayClass,
    Listener,
)
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, WORKLOAD
from meshwright.mesh.names import Namespace, Port
from meshwright.mesh.objects import MeshObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.workload import Edge, WorkloadKey
from tests.meshes import values as a

EDGE = PolicyKey(Namespace("default"), "edge")
GATEWAY_VALUE = Gateway(EDGE, "meshwright", (Listener("http", Port(80), "HTTP"),))
CLASS_VALUE = GatewayClass("meshwright", CONTROLLER_NAME)
EDGE_OBJECT = ObjectKey.from_name(GATEWAY, EDGE)


def _sourced(key: ObjectKey, value: MeshObject) -> SourcedObject:
    return SourcedObject(key, value, InFile("test"))


def _view() -> View:
    workload = replace(a.workload("edge-1", "10.0.0.1"), interception=Edge("edge"))
    named = ObjectKey.from_name(WORKLOAD, workload.key)
    class_object = ObjectKey(GATEWAY_CLASS, Namespace(""), "meshwright")
    objects = {
        EDGE_OBJECT: _sourced(EDGE_OBJECT, GATEWAY_VALUE),
        class_object: _sourced(class_object, CLASS_VALUE),
        named: _sourced(named, workload),
        **a.objects(a.workload("shop", "10.0.0.2")),
    }
    return View.build(objects, MeshSettings())


def test_gateways_are_found_by_key_and_classes_by_name() -> None:
    """A class has no namespace, so its name is its key."""
    view = _view()
    assert dict(gateways(view)) == {EDGE: GATEWAY_VALUE}
    assert dict(gateway_classes(view)) == {"meshwright": CLASS_VALUE}


def test_workloads_are_found_by_the_gateway_that_they_serve() -> None:
    """The gateway is of the workload's namespace, whether it exists or not."""
    view = _view()
    serving = {EDGE: (WorkloadKey(a.DEFAULT, "edge-1"),)}
    assert dict(workloads_by_gateway(view)) == serving
    view.apply(Edits({EDGE_OBJECT: None}))
    assert dict(gateways(view)) == {}
    assert dict(workloads_by_gateway(view)) == serving
