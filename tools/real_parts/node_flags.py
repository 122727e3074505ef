"""Flags and configuration of a node's programs.

They write to the node's own /run, which ends with the node.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tools.real_parts.flags import NODE_ADDRESS, PODS, Place

NODE: Final = "node-0"
PAUSE: Final = "parts.local/pause:1"
"""Name of the image for the container that holds a Pod's network; the runtime needs this image."""
SOCKET: Final = "/run/containerd.sock"
PLUGINS: Final = Path("/usr/lib/cni")
"""Folder of Debian's CNI plug-ins."""
CNI_PLUGINS: Final = "/opt/cni/bin"
CNI_NETWORKS: Final = "/etc/cni/net.d"
"""Usual folders of CNI plug-ins and networks, where other programs of the node may add files."""
DOMAIN: Final = "cluster.local"

CONTAINERD_READY: Final = "http://127.0.0.1:1338/v1/metrics"
KUBELET_READY: Final = "http://127.0.0.1:10248/healthz"
PROXY_READY: Final = "http://127.0.0.1:10256/livez"
DNS_READY: Final = "http://127.0.0.1:8181/ready"


def kubeconfig(place: Place, name: str) -> Path:
    """Return the path of the kubeconfig of the program `name`."""
    return place.folder / f"{name}.kubeconfig"


def scheduler(place: Place) -> list[str]:
    """Return the flags of kube-scheduler."""
    config = kubeconfig(place, "scheduler")
    return [
        *(f"--{item}kubeconfig={config}" for item in ("", "authentication-", "authorization-")),
        "--bind-address=127.0.0.1",
        f"--tls-cert-file={place.keys / 'scheduler.crt'}",
        f"--tls-private-key-file={place.keys / 'scheduler.key'}",
        "--leader-elect=false",
    ]


def containerd(place: Place) -> list[str]:
    """Write the configuration of containerd, the container runtime; return its flags."""
    path = _written(
        place,
        "containerd.toml",
        f"""version = 2
root = "/run/containerd-root"
state = "/run/containerd-state"
disabled_plugins = ["io.containerd.internal.v1.opt"] # it makes /opt/containerd
[grpc]
  address = "{SOCKET}"
[metrics]
  address = "127.0.0.1:1338"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  restrict_oom_score_adj = true # without CAP_SYS_RESOURCE none can be below our own
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{CNI_NETWORKS}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
""",
    )
    return [f"--config={path}"]


def network() -> str:
    """Return the CNI configuration of Pod networks.

    Each Pod has a veth pair in place of a port on a bridge, so packets between Pods pass the node's iptables
    rules in both directions.
    """
    addresses = {
        "type": "host-local",
        "dataDir": "/run/ipam",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    plugins = [{"type": "ptp", "ipam": addresses}, ports]
    return json.dumps({"cniVersion": "1.0.0", "name": "parts", "plugins": plugins}, indent=1)


def kubelet(place: Place, group: str) -> list[str]:
    """Write the configuration of the kubelet, with the control group `group`; return its flags."""
    keys = place.keys
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {"x509": {"clientCAFile": str(keys / "ca.crt")}, "anonymous": {"enabled": False}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys / "kubelet.crt"),
        "tlsPrivateKeyFile": str(keys / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "resolvConf": str(_written(place, "resolv.conf", "")),
        "clusterDomain": DOMAIN,
        "clusterDNS": [NODE_ADDRESS],
        # The fill level of the tester's disk must not cause evictions. For memory the kubelet accepts no
        # bound of zero.
        "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%", "memory.available": "1Mi"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": "/run/pods",
        "volumePluginDir": "/run/volume-plugins",
        "syncFrequency": "10s",
    }
    written = _written(place, "kubelet.json", config)
    return [
        f"--config={written}",
        f"--kubeconfig={kubeconfig(place, 'kubelet')}",
        "--root-dir=/run/kubelet",
        "--cert-dir=/run/kubelet-pki",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
    ]


def proxy(place: Place) -> list[str]:
    """Return the flags of kube-proxy; its changes of kernel limits are switched off."""
    return [
        f"--kubeconfig={kubeconfig(place, 'proxy')}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={PODS}",
        f"--hostname-override={NODE}",
        "--healthz-bind-address=127.0.0.1:10256",
        "--metrics-bind-address=127.0.0.1:10249",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]


def dns(place: Place) -> list[str]:
    """Write the configuration of the DNS server; return its flags."""
    zones = f"""{DOMAIN} in-addr.arpa ip6.arpa {{
    kubeconfig {place.folder / "admin.kubeconfig"}
    pods insecure
    ttl 5
  }}"""
    lines = (f"bind {NODE_ADDRESS}", "errors", "ready 127.0.0.1:8181", f"kubernetes {zones}")
    text = "\n".join((".:53 {", *(f"  {line}" for line in lines), "}", ""))
    return [f"-conf={_written(place, 'Corefile', text)}"]


def _written(place: Place, name: str, content: Mapping[str, Any] | str) -> Path:
    path = place.folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), "utf-8")
    return path
