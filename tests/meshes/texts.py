"""Small manifests for tests of sources."""

from mesh.kinds import SERVICE_ACCOUNT, WORKLOAD
from mesh.names import Namespace
from mesh.objects import ObjectKey


def account(name: str) -> str:
    """Return a ServiceAccount's manifest."""
    return f"apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: shop}}\n"


def account_key(name: str) -> ObjectKey:
    """Return the key of `account`."""
    return ObjectKey(SERVICE_ACCOUNT, Namespace("shop"), name)


def workload(name: str, address: str) -> str:
    """Return a Workload's manifest."""
    return (
        "apiVersion: meshwright.dev/v1alpha1\nkind: Workload\n"
        f"metadata: {{name: {name}, namespace: shop}}\nspec: {{address: {address}}}\n"
    )


def workload_key(name: str) -> ObjectKey:
    """Return the key of `workload`."""
    return ObjectKey(WORKLOAD, Namespace("shop"), name)
