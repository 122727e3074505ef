"""ConfigMaps with CA certificates: whole values, and faults without any content."""

import base64

import pytest

from meshwright.mesh.gateway.ca_bundles import CaBundle
from meshwright.mesh.kinds import CONFIG_MAP
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.kubernetes.projection import projected
from tests.tools.tls_secrets import config_map, self_signed

KEY = PolicyKey(Namespace("default"), "ca")
FIRST, SECOND = self_signed("a.example").chain.decode(), self_signed("b.example").chain.decode()


def read(manifest: str) -> CaBundle:
    """Read the only object of a manifest, which must have no problems."""
    manifests = Manifests().apply("mesh.yaml", manifest)
    assert manifests.problems() == ()
    (sourced,) = manifests.objects().values()
    assert isinstance(sourced.value, CaBundle)
    return sourced.value


@pytest.mark.parametrize(
    ("entry", "expected"),
    [(FIRST, FIRST), (FIRST + SECOND, FIRST + SECOND), (f"A root:\n{FIRST}\n{FIRST}", FIRST)],
    ids=["one", "two", "text and a repetition"],
)
def test_certificates_are_read_whole(entry: str, expected: str) -> None:
    """Each certificate is there once, without other text."""
    assert read(config_map("ca", {"ca.crt": entry})) == CaBundle(KEY, expected)


def test_certificates_may_be_binary_data() -> None:
    """A tool may write the entry as bytes."""
    written = base64.b64encode(FIRST.encode()).decode()
    text = config_map("ca", {"ca.crt": written}).replace("\ndata:", "\nbinaryData:")
    assert read(text) == CaBundle(KEY, FIRST)
    assert read(text.replace(written, "'%%'")).fault == "data.ca.crt is not base64"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("''", "data.ca.crt is empty"),
        ("Hello world", "data.ca.crt is not a certificate in PEM"),
        ("[1]", "data.ca.crt is not text"),
    ],
)
def test_fault_says_what_is_wrong(entry: str, expected: str) -> None:
    """The policy or gateway that names the ConfigMap repeats the fault."""
    manifest = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ca}}\ndata: {{ca.crt: {entry}}}\n"
    assert read(manifest) == CaBundle(KEY, fault=expected)


def test_other_config_maps_are_not_objects_of_the_mesh() -> None:
    """They may have any names, and any of them may be written twice."""
    manifests = Manifests().apply("a.yaml", config_map("ca", {"tls.crt": FIRST}))
    manifests = manifests.apply("b.yaml", config_map("ca", {"tls.crt": FIRST}))
    assert dict(manifests.objects()) == {}
    assert {(str(item.severity), item.code) for item in manifests.problems()} == {("info", "MW1031")}


def test_config_map_that_loses_its_entry_is_out_of_force() -> None:
    """Its certificates do not stay in force."""
    manifests = Manifests().apply("a.yaml", config_map("ca", {"ca.crt": FIRST}))
    assert set(manifests.objects()) == {ObjectKey.from_name(CONFIG_MAP, KEY)}
    assert dict(manifests.apply("a.yaml", config_map("ca", {"other": FIRST})).objects()) == {}


def test_only_the_certificates_of_a_cluster_are_stored() -> None:
    """Other entries of a ConfigMap are never kept."""
    document = {
        "metadata": {"name": "ca", "namespace": "shop", "labels": {}},
        "data": {"ca.crt": "a", "b": "c"},
    }
    assert projected(CONFIG_MAP, "v1", document) == (
        '{"apiVersion":"v1","data":{"ca.crt":"a"},"kind":"ConfigMap",'
        '"metadata":{"name":"ca","namespace":"shop"}}'
    )
