"""What the programs of a control plane are told: all on loopback, all over TLS, keys from one folder.

Where Pods run they are told of a node's network, and the API listens there: `tools.real_parts.node_flags`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.real_parts.keys import LOOPBACK

SERVICES: Final = "10.96.0.0/12"
"""The addresses of Services; the first of them is the API's own."""
FIRST_SERVICE: Final = "10.96.0.1"
PODS: Final = "10.244.0.0/16"
NODE_ADDRESS: Final = "10.99.0.1"
"""Where an API is whose Pods run, and their node: in a network of its own, so that it is the same for all."""
ISSUER: Final = "https://kubernetes.default.svc"
"""Who signs the tokens of service accounts, and whom they are for."""

_UNWANTED: Final = (
    "node-lifecycle-controller",  # a Node that no kubelet reports on is as it was written, its Pods too
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cluster is: its folder, the ports of its programs, and the address of its API.

    With Pods that run the address is its node's.
    """

    folder: Path
    api: int
    store: int
    peers: int
    controllers: int
    host: str = LOOPBACK

    @property
    def has_node(self) -> bool:
        """Say whether Pods run."""
        return self.host != LOOPBACK

    @property
    def server(self) -> str:
        """Return where the API is."""
        return f"https://{self.host}:{self.api}"

    @property
    def keys(self) -> Path:
        """Return the folder of keys and certificates."""
        return self.folder / "keys"

    @property
    def audit(self) -> Path:
        """Return the log of what service accounts asked the API for, a JSON object a line."""
        return self.folder / "log" / "audit.log"

    @property
    def etcd(self) -> str:
        """Return where etcd is."""
        return f"https://{LOOPBACK}:{self.store}"


def etcd(place: Place) -> list[str]:
    """Return etcd's flags."""
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
        "--unsafe-no-fsync",  # it lives as long as the test
        "--log-level=warn",
    ]


def api_server(place: Place, *, controlled: bool) -> list[str]:
    """Return the API server's flags; where nobody controls, nobody makes the accounts of Pods either."""
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
    """Have it ask the kubelet for logs and the like; on loopback, which is no endpoint, there is none."""
    keys = place.keys
    return [
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-certificate-authority={keys / 'ca.crt'}",
        f"--kubelet-client-certificate={keys / 'admin.crt'}",
        f"--kubelet-client-key={keys / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _audited(place: Place) -> list[str]:
    """Have written down, before it is answered, what service accounts ask for, but not what they send."""
    every = {"level": "Metadata", "userGroups": ["system:serviceaccounts"], "omitStages": ["RequestReceived"]}
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [every, {"level": "None"}]}
    (place.folder / "audit.json").write_text(json.dumps(policy), "utf-8")
    return [f"--audit-policy-file={place.folder / 'audit.json'}", f"--audit-log-path={place.audit}"]


def controllers(place: Place) -> list[str]:
    """Return the controller manager's flags: one user for all, since a user each takes seconds to make."""
    keys, config = place.keys, place.folder / "controllers.kubeconfig"
    return [
        *(f"--{each}kubeconfig={config}" for each in ("", "authentication-", "authorization-")),
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
