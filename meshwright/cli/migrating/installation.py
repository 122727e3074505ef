"""Remaining parts of Open Service Mesh itself, and the order in which they can be removed."""

from collections.abc import Iterator
from typing import Final

from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.objects import GROUPS, group_of
from meshwright.mesh import kinds
from meshwright.specs.osm.own_names import CONTROL_PLANE, WEBHOOKS

_NOT_BEFORE: Final = "when the last Pod with its sidecar is gone"
_OURS: Final = "then `meshwright crds | kubectl apply --server-side --force-conflicts -f -`"
UNCONVERTED: Final = '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'
"""The patch that removes a conversion webhook; applying our definitions would keep the webhook."""


def of_installation(document: Document) -> Iterator[Finding]:
    """Yield the remaining work for a part of Open Service Mesh; other objects have no finding."""
    match document.get("kind"):
        case kinds.DEPLOYMENT.name if _name(document) in CONTROL_PLANE:
            text = "Open Service Mesh's control plane, which its sidecars need"
            do = f"uninstall it {_NOT_BEFORE}: `osm uninstall mesh`"
            yield Finding(named(document), MigrationStatus.TO_DO, text, do=do)
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" if _is_osm_webhook(document):
            text = (
                "Open Service Mesh's webhook, which validates policy or injects sidecars until it is deleted"
            )
            do = (
                f"delete it {_NOT_BEFORE}; before that, label the namespaces that you migrate "
                "openservicemesh.io/ignore"
            )
            if document.get("kind") == "MutatingWebhookConfiguration":
                do = (
                    "delete it as soon as Meshwright injects sidecars; with both webhooks the first "
                    "one gets the pod"
                )
            yield Finding(named(document), MigrationStatus.TO_DO, text, do=do)
        case "CustomResourceDefinition" if _is_converted(document):
            text = "osm-bootstrap converts its versions; without osm-bootstrap its objects cannot be read"
            patch = f"kubectl patch crd {_name(document)} --type=merge -p '{UNCONVERTED}'"
            do = f"before its removal: `{patch}`, {_OURS}"
            yield Finding(named(document), MigrationStatus.TO_DO, text, "spec.conversion", do=do)
        case _:
            return


def root() -> Finding:
    """Return the finding about the new root certificate, which is not visible in any object."""
    text = (
        "differs from Open Service Mesh's root, so pods of the two meshes cannot call each other "
        "by mTLS, whatever policy allows"
    )
    do = (
        "migrate workloads that call each other together, and namespaces without calls to other "
        "namespaces first"
    )
    return Finding("root certificate", MigrationStatus.TO_DO, text, do=do)


def _name(document: Document) -> str:
    return str(mapping(document.get("metadata")).get("name"))


def _is_osm_webhook(document: Document) -> bool:
    webhooks = document.get("webhooks")
    names = [mapping(webhook).get("name") for webhook in webhooks] if isinstance(webhooks, list) else []
    return any(name in WEBHOOKS for name in names)


def _is_converted(document: Document) -> bool:
    spec = mapping(document.get("spec"))
    strategy = mapping(spec.get("conversion")).get("strategy")
    return (
        group_of(document) == "apiextensions.k8s.io" and spec.get("group") in GROUPS and strategy == "Webhook"
    )
