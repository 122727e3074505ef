"""Flags of the programs of a control plane: loopback addresses, TLS, and keys from one folder.

If Pods run, the API server listens in the network of the node: see `tools.real_parts.node_flags`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.real_parts.keys import LOOPBACK

SERVICES: Final = "10.96.0.0/12"
"""IP addresses of Services; the first one belongs to the API server."""
FIRST_SERVICE: Final = "10.96.0.1"
PODS: Final = "10.244.0.0/16"
NODE_ADDRESS: Final = "10.99.0.1"
"""Address of the node and of the API server.

Each node has its own network, so all nodes have the same address.
"""
ISSUER: Final = "https://kubernetes.default.svc"
"""Issuer and audience of ServiceAccount tokens."""

_UNWANTED: Final = (
    "node-lifecycle-controller",  # would change Nodes without a kubelet, and their Pods
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a cluster: folder, ports of the programs, and host of the API server.

    If Pods run, the host is the address of the node.
    """

    folder: Path
    api: int
    store: int
    peers: int
    controllers: int
    host: str = LOOPBACK

    @property
    def has_node(self) -> bool:
        """Return whether the cluster has a node for Pods."""
        return self.host != LOOPBACK

    @property
    def server(self) -> str:
        """Return the URL of the Kubernetes API server."""
        return f"https://{self.host}:{self.api}"

    @property
    def keys(self) -> Path:
        """Return the folder of the cluster's keys and certificates."""
        return self.folder / "keys"

    @property
    def audit(self) -> Path:
        """Return the path of the audit log: requests of ServiceAccounts, one JSON object per line."""
        return self.folder / "log" / "audit.log"

    @property
    def etcd(self) -> str:
        """Return the URL of etcd for clients."""
        return f"https://{LOOPBACK}:{self.store}"


def etcd(place: Place) -> list[str]:
    """Return the flags of etcd."""
    keys, peer = place.keys, f"http://{LOOPBACK}:{place.peers}"
    return [
        "--name=parts",
        f"--data-dir={place.folder / 'etcd'}",
        f"--listen-client-urls={place.etcd}",
        f"--advertise-client-urls={place.etcd}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=parts={peer}",
        f"--cert-file={keys / 'etcd.crt'}",
        f"--key-file={keys / 'etcd.key'}",
        f"--trusted-ca-file={keys / 'ca.crt'}",
        "--client-cert-auth",
        # The data need not survive a crash, because a cluster lives only as long as its test.
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(place: Place, *, controlled: bool) -> list[str]:
    """Return the flags of the API server.

    Without controllers the admission of ServiceAccounts is off, because each Pod would wait for an account.
    """
    keys = place.keys
    return [
        f"--bind-address={place.host}",
        f"--advertise-address={place.host}",
        f"--secure-port={place.api}",
        f"--etcd-servers={place.etcd}",
        f"--etcd-cafile={keys / 'ca.crt'}",
        f"--etcd-certfile={keys / 'etcd.crt'}",
        f"--etcd-keyfile={keys / 'etcd.key'}",
        f"--tls-cert-file={keys / 'server.crt'}",
        f"--tls-private-key-file={keys / 'server.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--authorization-mode={'Node,' if place.has_node else ''}RBAC",
        "--allow-privileged=true",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={keys / 'tokens.pub'}",
        f"--service-account-signing-key-file={keys / 'tokens.key'}",
        f"--service-cluster-ip-range={SERVICES}",
        *(_reaches_kubelet(place) if place.has_node else ["--endpoint-reconciler-type=none"]),
        *(_audited(place) if controlled else ["--disable-admission-plugins=ServiceAccount"]),
    ]


def _reaches_kubelet(place: Place) -> list[str]:
    """Return the flags for requests to the kubelet, for example for logs.

    A cluster on loopback has no kubelet.
    """
    keys = place.keys
    return [
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-certificate-authority={keys / 'ca.crt'}",
        f"--kubelet-client-certificate={keys / 'admin.crt'}",
        f"--kubelet-client-key={keys / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _audited(place: Place) -> list[str]:
    """Write an audit policy that logs requests of ServiceAccounts without bodies; return the flags for it."""
    every = {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "omitStages": ["RequestReceived"]}
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [every, {"level": "None"}]}
    (place.folder / "audit.json").write_text(json.dumps(policy), "utf-8")
    return [f"--audit-policy-file={place.folder / 'audit.json'}", f"--audit-log-path={place.audit}"]


def controllers(place: Place) -> list[str]:
    """Return the flags of the controller manager.

    All controllers share one user, because one each takes seconds.
    """
    keys, config = place.keys, place.folder / "controllers.kubeconfig"
    return [
        *(f"--{item}kubeconfig={config}" for item in ("", "authentication-", "authorization-")),
        f"--bind-address={LOOPBACK}",
        f"--secure-port={place.controllers}",
        f"--tls-cert-file={keys / 'controllers.crt'}",
        f"--tls-private-key-file={keys / 'controllers.key'}",
        f"--service-account-private-key-file={keys / 'tokens.key'}",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--cluster-cidr={PODS}",
        f"--service-cluster-ip-range={SERVICES}",
        "--leader-elect=false",
        "--controllers=" + ",".join(("*", *(() if place.has_node else (f"-{each}" for each in _UNWANTED)))),
    ]
