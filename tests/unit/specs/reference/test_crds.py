"""Tests of the CustomResourceDefinitions without an API server: versions, schemas and descriptions."""

import functools
import json
from typing import Any

import pytest

from meshwright.cli.errors import CommandFailed
from meshwright.cli.offline import reference
from meshwright.mesh.kinds import (
    CLIENT_TRAFFIC_POLICY,
    GATEWAY_API,
    INGRESS_BACKEND,
    MESH_ROOT_CERTIFICATE,
    UDP_ROUTE,
    WORKLOAD,
    Kind,
)
from meshwright.providers.text.documents import documents
from meshwright.providers.text.yaml_documents import printed
from meshwright.specs.kinds import READ
from meshwright.specs.reference.meanings.definitions import INSTALLED
from meshwright.specs.reference.meanings.kinds import KINDS
from meshwright.specs.reference.schema import of_shape
from meshwright.specs.reference.shapes import walked
from meshwright.specs.reference.structural import WHATEVER, structural
from tests.tools.forked_cli import ROOT
from tests.unit.specs.reference.document_places import DESCRIBED

INSTALLABLE = tuple(kind for kind in KINDS if kind in INSTALLED)
OF_KUBERNETES = ("", "apps", "batch", "discovery.k8s.io")
VERSIONS = [
    pytest.param(kind, name, id=f"{kind.name}-{name}")
    for kind in INSTALLABLE
    for name in reversed(READ[kind].versions)
]


@functools.cache
def crds() -> dict[str, Any]:
    """Return all CustomResourceDefinitions by kind."""
    return {definition["spec"]["names"]["kind"]: definition for definition in reference.definitions(())}


def crd_version(kind: Kind, name: str) -> Any:
    """Return one version of a kind's CustomResourceDefinition."""
    (result,) = (version for version in crds()[kind.name]["spec"]["versions"] if version["name"] == name)
    return result


def test_crd_manifests_equal_the_generated_ones() -> None:
    """`meshwright crds > deploy/chart/meshwright/files/crds.yaml` corrects them."""
    assert (ROOT / "deploy" / "chart" / "meshwright" / "files" / "crds.yaml").read_text("utf-8") == printed(
        reference.definitions(())
    )


def test_every_kind_that_is_read_has_a_crd() -> None:
    """Exceptions are the kinds of Kubernetes and the Gateway API, and UDPRoute, which is always refused."""
    others = (*OF_KUBERNETES, GATEWAY_API)
    assert set(INSTALLABLE) == {kind for kind in READ if kind.group not in others} - {UDP_ROUTE}


def test_printed_crds_are_read_back_unchanged() -> None:
    """They are read as YAML by our own reader, and as JSON."""
    result = [document.value for document in documents(printed(reference.definitions(())))]
    assert result == list(crds().values()) == json.loads(json.dumps(list(crds().values())))


@pytest.mark.parametrize("kind", INSTALLABLE, ids=str)
def test_every_version_read_is_served_and_the_newest_is_stored(kind: Kind) -> None:
    """Versions are listed from the newest, and there is no conversion."""
    spec = crds()[kind.name]["spec"]
    assert [version["name"] for version in spec["versions"]] == [*reversed(READ[kind].versions)]
    assert [version["storage"] for version in spec["versions"]] == [True] + [False] * (
        len(READ[kind].versions) - 1
    )
    assert all(version["served"] for version in spec["versions"])
    assert spec["conversion"] == {"strategy": "None"}


def _field(schema: Any, place: str) -> Any:
    for name in place.replace("[]", ".[]").split("."):
        schema = schema.get("items") if name == "[]" else schema.get("properties", {}).get(name)
        if schema is None or ("type" not in schema and WHATEVER in schema):
            return schema
    return schema


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_no_version_drops_a_field_of_another_version(kind: Kind, version: str) -> None:
    """The API server prunes fields without a schema when it stores or returns an object."""
    schema = crd_version(kind, version)["schema"]["openAPIV3Schema"]
    (described,) = (described_kind for described_kind in reference.described() if described_kind.kind == kind)
    places = {
        field.place
        for shape in described.shapes
        for field in walked(shape.body)
        if not field.place.startswith("metadata")
    }
    assert [place for place in sorted(places) if _field(schema, place) is None] == []


def test_document_must_have_the_form_of_exactly_one_version() -> None:
    """A TrafficTarget has a spec or the older fields beside metadata; with both or neither it is refused."""
    for version in crds()["TrafficTarget"]["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        assert sorted(item["required"] for item in schema["oneOf"]) == [["destination"], ["spec"]]
        assert "required" not in schema
    for version in crds()["TrafficSplit"]["spec"]["versions"]:
        assert version["schema"]["openAPIV3Schema"]["required"] == ["spec"]


def test_description_names_the_version_of_a_field() -> None:
    """`kubectl explain` shows these descriptions."""
    newest = crds()["TrafficTarget"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert newest["properties"]["specs"]["description"].startswith("In v1alpha1: The allowed routes")
    assert _field(newest, "spec.destination.port")["description"].startswith("In v1alpha2:")
    assert not _field(newest, "spec.rules")["description"].startswith("In ")


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_rules_list_keys_and_columns_are_in_the_schema(kind: Kind, version: str) -> None:
    """Each validation rule and each list key belongs to an existing field."""
    result, installed = crd_version(kind, version), INSTALLED[kind]
    schema = result["schema"]["openAPIV3Schema"]
    for rule in installed.rules:
        rules = _field(schema, rule.place)["x-kubernetes-validations"]
        assert {"rule": rule.holds, "message": rule.message} in rules
    for place, key in installed.keys.items():
        assert _field(schema, place)["x-kubernetes-list-map-keys"] == [key]
    assert result["additionalPrinterColumns"][-1]["name"] == "Age"


def test_only_four_kinds_have_a_status_field() -> None:
    """They are Workload, ClientTrafficPolicy, IngressBackend, MeshRootCertificate; SMI has none."""
    having = {name for name, crd in crds().items() if "status" in _properties(crd)}
    assert having == {
        kind.name for kind in (CLIENT_TRAFFIC_POLICY, WORKLOAD, INGRESS_BACKEND, MESH_ROOT_CERTIFICATE)
    }
    assert crds()["Workload"]["spec"]["versions"][0]["subresources"] == {"status": {}}


def _properties(crd: Any) -> Any:
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def _schemas(schema: Any) -> Any:
    yield schema
    for item in (
        *schema.get("properties", {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ):
        if isinstance(item, dict):
            yield from _schemas(item)


@DESCRIBED
def test_every_schema_value_has_one_type_or_is_left_to_the_reader(described: Any) -> None:
    """Kubernetes requires such structural schemas for every kind."""
    for shape in described.shapes:
        for schema in _schemas(structural(of_shape(shape))):
            assert {"type", "x-kubernetes-int-or-string", WHATEVER} & set(schema), schema
            assert not {"type", "x-kubernetes-int-or-string"} <= set(schema)
            assert isinstance(schema.get("type", ""), str)
            assert not {"properties", "additionalProperties"} <= set(schema)
            assert None not in schema.get("enum", [])


def test_crd_is_selected_by_its_kind() -> None:
    """An unknown kind is an error that suggests a similar name."""
    assert [definition["metadata"]["name"] for definition in reference.definitions(["Workload"])] == [
        "workloads.meshwright.dev"
    ]
    with pytest.raises(CommandFailed, match=r"--kind is 'Wrkload': did you mean Workload\?"):
        reference.definitions(["Wrkload"])
    with pytest.raises(CommandFailed, match="--kind is 'Pod': must be one of Workload, TrafficTarget"):
        reference.definitions(["Pod"])


def test_open_mapping_keeps_unknown_fields() -> None:
    """OSM's MeshConfig has more fields than are read; an unknown field in a kind of SMI is a mistake."""
    (config,) = (
        version["schema"]["openAPIV3Schema"] for version in crds()["MeshConfig"]["spec"]["versions"][:1]
    )
    assert _field(config, "spec.traffic.inboundExternalAuthorization")[WHATEVER]
    assert _field(config, "spec.sidecar")[WHATEVER]
    (target,) = (
        version["schema"]["openAPIV3Schema"] for version in crds()["TrafficTarget"]["spec"]["versions"][:1]
    )
    assert WHATEVER not in [name for schema in _schemas(target) for name in schema]
