"""Resources that every API server serves, such as Pods, and the parser of a server's version."""

import re
from typing import Final

from meshwright.kube.resource import Raw, Resource

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PODS: Final = Resource("", "v1", "pods", "Pod")
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
SERVICES: Final = Resource("", "v1", "services", "Service")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
STORAGE_CLASSES: Final = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
CLAIMS: Final = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
STATEFUL_SETS: Final = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SETS: Final = Resource("apps", "v1", "daemonsets", "DaemonSet")
SLICES: Final = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
MUTATING: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)

_NUMBER: Final = re.compile(r"[0-9]+")


def minor_version(version: Raw) -> tuple[int, int] | None:
    """Return the version in an answer of `/version`, for example (1, 29); None if unreadable.

    Providers append signs to the minor number, for example `29+`, which are ignored.
    """
    matches = [_NUMBER.match(str(version.get(name, ""))) for name in ("major", "minor")]
    match matches:
        case [re.Match() as major, re.Match() as minor]:
            return int(major[0]), int(minor[0])
        case _:
            return None
