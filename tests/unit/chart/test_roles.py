"""Tests that the chart grants the roles of docs/kubernetes, which are proven minimal, and no others."""

from typing import Any

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults, manifests
from meshwright.records.kubernetes.store import CUSTODY
from tests.kubernetes.tools.permissions import granted
from tests.tools import libyaml
from tests.tools.forked_cli import ROOT
from tests.unit.docs.test_roles import FILES

ALL: dict[str, Any] = {
    "store": "directory",
    "injection": {"enabled": True, "config": {"identity": "secret"}},
    "cni": {"enabled": True, "namespace": "meshwright-system"},
    "certManager": {"enabled": True, "issuer": "Issuer/mesh"},
    "ingressGateway": {"secrets": [{"name": "gateway-certificate", "namespace": "ingress"}]},
}
SEVERAL: dict[str, Any] = {**ALL, "store": "kubernetes"}
_BARE = {"webhook": {"enabled": False}, "injection": {"enabled": False}}


def _documents(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [libyaml.load(manifest) for manifest in manifests(merged(defaults(), values))]


def test_chart_with_all_features_grants_the_documented_roles() -> None:
    """Every role is bound to a ServiceAccount of ours.

    The rights to create objects that the chart itself brings are omitted.
    """
    handed_out = [
        item
        for file in FILES
        for item in libyaml.load_all((ROOT / "docs" / "kubernetes" / file).read_text("utf-8"))
    ]
    result = _documents(SEVERAL)
    brought = {"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "leases"}
    made = {grant for grant in granted(handed_out) if grant.verb == "create" and grant.resource in brought}
    assert {grant.resource for grant in made} == brought
    assert set(granted(result)) == set(granted(handed_out)) - made, "what the chart brings nobody makes again"
    roles = {(item["kind"], item["metadata"]["name"]) for item in result if item["kind"].endswith("Role")}
    bound = [item for item in result if item["kind"].endswith("RoleBinding")]
    assert {(item["roleRef"]["kind"], item["roleRef"]["name"]) for item in bound} == roles
    for item in bound:
        name = "meshwright-cni" if item["roleRef"]["name"] == "meshwright-cni" else "meshwright"
        assert item["subjects"] == [
            {"kind": "ServiceAccount", "name": name, "namespace": "meshwright-system"}
        ]


def test_disabled_features_have_no_grants() -> None:
    """Without webhooks there is no right to register one, and no rule has a wildcard.

    Without Secrets for pods, the only rights on Secrets are those on the gateway's and, for several servers,
    on the Secret of the CA.
    """
    of = {grant.group for grant in granted(_documents(_BARE))}
    assert not of & {"admissionregistration.k8s.io", "cert-manager.io"}
    joining = _documents({**ALL, "injection": {"enabled": True}})
    named = [grant for grant in granted(joining) if grant.resource == "secrets"]
    assert {(grant.namespace, grant.name) for grant in named} == {("ingress", "gateway-certificate")}
    several = _documents({**SEVERAL, "injection": {"enabled": True}, "ingressGateway": {"secrets": []}})
    named = [grant for grant in granted(several) if grant.resource == "secrets"]
    assert {(grant.namespace, grant.name) for grant in named} == {("meshwright-system", CUSTODY)}
    alone = {*granted(_documents({"ingressGateway": {"secrets": []}, "store": "directory"}))}
    assert not {grant.resource for grant in alone} & {"secrets", "records", "persistentvolumeclaims"}
    more = {*granted(_documents(ALL))} - {*granted(joining)}
    assert sorted((grant.resource, grant.verb) for grant in more) == [
        ("secrets", verb) for verb in ("create", "delete", "list", "patch")
    ]
    everything = _documents(SEVERAL)
    assert not [grant for grant in granted(everything) if "*" in (grant.verb, grant.group, grant.resource)]


def test_revisions_have_no_object_in_common() -> None:
    """Two control planes in two namespaces can be installed side by side."""
    values: dict[str, Any] = {**ALL, "cni": {}}
    mine = {
        _key(document) for document in _documents(values) if document["kind"] != "CustomResourceDefinition"
    }
    others = merged(defaults(), {**values, "revision": "next", "crds": {"install": False}})
    theirs = {_key(libyaml.load(manifest)) for manifest in manifests(others, "meshwright-next")}
    assert not mine & theirs
    assert {kind for kind, *_ in mine} == {kind for kind, *_ in theirs}


def _key(of: dict[str, Any]) -> tuple[str, str, str]:
    return of["kind"], of["metadata"].get("namespace", ""), of["metadata"]["name"]
