"""Documents of other projects beside ours: they hold nothing of ours in force, and are told of once."""

import pytest

from mesh.kinds import TCP_ROUTE
from mesh.names import Namespace
from mesh.objects import ObjectKey
from providers.manifests import Manifests
from tests.meshes.texts import account

OURS = (
    "apiVersion: specs.smi-spec.io/v1alpha4\nkind: TCPRoute\nmetadata: {name: db, namespace: shop}\n"
    "spec: {matches: {ports: [5432]}}\n"
)
KEY = ObjectKey(TCP_ROUTE, Namespace("shop"), "db")
SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: db, namespace: shop}\n"
    "spec: {ports: [{name: tcp, port: 5432}]}\n"
)


def _other(api_version: str, kind: str, name: str = "db", rest: str = "spec: {}") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\n{rest}\n"


def _said(state: Manifests) -> list[str]:
    return [f"{each.severity.value}: {each}" for each in state.problems()]


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (OURS, _other("gateway.networking.k8s.io/v1alpha2", "TCPRoute")),
        (SERVICE, _other("serving.knative.dev/v1", "Service")),
    ],
)
def test_a_kind_of_the_same_name_keeps_nothing_in_force(ours: str, other: str) -> None:
    """Ours is in force beside it, and gone once its own document is."""
    before = Manifests().apply("a.yaml", ours + "---\n" + other)
    assert [(key.name, held.stale) for key, held in before.objects().items()] == [("db", False)]
    after = before.apply("a.yaml", other)
    assert dict(after.objects()) == {}
    assert [each.severity.value for each in after.problems()] == ["info"]


def test_what_says_no_group_still_keeps_the_last_good_form() -> None:
    """A slip in apiVersion, or none at all, is no wish that the route be gone: the control of the above."""
    before = Manifests().apply("a.yaml", OURS)
    for broken in (
        OURS.replace("apiVersion: specs.smi-spec.io/v1alpha4\n", ""),
        OURS.replace("specs.smi-spec.io/v1alpha4", "specs.smi-spec.io/v1alpha9"),
        OURS.replace("specs.smi-spec.io", "spec.smi-spec.io"),
    ):
        after = before.apply("a.yaml", broken)
        assert [(key, held.stale) for key, held in after.objects().items()] == [(KEY, True)]
        assert [each.severity.value for each in after.problems()] == ["error"]


def test_a_broken_document_of_another_project_does_not_stand_for_ours() -> None:
    """Ours is held back for a while, since a broken document may stand for anything, and that is said."""
    broken = _other("gateway.networking.k8s.io/v1alpha2", "TCPRoute", rest="spec: [")
    after = Manifests().apply("a.yaml", OURS).apply("a.yaml", broken)
    assert [(key, held.stale) for key, held in after.objects().items()] == [(KEY, True)]
    assert {(each.code, each.key) for each in after.problems()} == {("MW1101", None), ("MW1107", KEY)}


def test_each_foreign_kind_is_told_of_once() -> None:
    """At its first place, in whatever order the files came, with how many there are; lists count by item."""
    certificates = "---\n".join(_other("cert-manager.io/v1", "Certificate", name) for name in "abc")
    listed = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: cert-manager.io/v1, kind: Certificate}\n"
        "- {apiVersion: cert-manager.io/v1, kind: Certificate}\n"
    )
    gateway = _other("gateway.networking.k8s.io/v1", "Gateway")
    files = {"b.yaml": account("a") + "---\n" + certificates, "a.yaml": gateway, "c.yaml": listed}
    expected = [
        (
            'info: MW1031 a.yaml:1 (document 1): document: kind is "Gateway.gateway.networking.k8s.io": '
            "is no part of a mesh and not read"
        ),
        (
            'info: MW1031 b.yaml:5 (document 2): document: kind is "Certificate.cert-manager.io": '
            "is no part of a mesh and not read; 5 objects are such"
        ),
    ]
    state = Manifests().apply_all(files)
    assert _said(state) == expected
    later = Manifests().apply("c.yaml", listed).apply("a.yaml", gateway).apply("b.yaml", files["b.yaml"])
    assert _said(later) == expected
    fewer = later.apply("b.yaml", account("a"))
    assert _said(fewer)[1] == (
        'info: MW1031 c.yaml:1 (document 1): document: kind is "Certificate.cert-manager.io": '
        "is no part of a mesh and not read; 2 objects are such"
    )


def test_a_pod_template_that_is_repeated_is_a_warning() -> None:
    """An overlay says a Deployment again: nothing of it is in force, so nothing is refused."""
    deployment = _other("apps/v1", "Deployment", rest="spec: {template: {spec: {serviceAccountName: db}}}")
    patch = _other("apps/v1", "Deployment", rest="spec: {replicas: 3}")
    state = Manifests().apply_all({"base.yaml": deployment, "overlay.yaml": deployment, "patch.yaml": patch})
    assert [(each.severity.value, each.code, str(each.origin)) for each in state.problems()] == [
        ("warning", "MW1106", "overlay.yaml:1 (document 1)"),
        ("info", "MW1020", "patch.yaml:1 (document 1)"),
    ]
    assert [str(key) for key in state.objects()] == ["Deployment shop/db"]
