"""The parts: each a program of a Go module, at a pinned version.

Another one is another entry below. Where a module's own go.mod cannot be built from outside (Kubernetes
replaces its staging modules by folders, Istio names commits that the proxies of modules do not have), the
entry says what stands for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

GO: Final = "1.26.0"
"""The Go language that the parts are built in."""

_STAGED: Final = re.compile(r"^\t(\S+) => \./staging/", re.MULTILINE)
_VERSIONED: Final = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Part:
    """A program: its module and version, the package to build, and what else its build is told.

    `requires` are modules at other versions than its go.mod's; `staging` is the version of those that its
    go.mod replaces by folders, empty where it has none; `variables` are set by the linker.
    """

    name: str
    module: str
    version: str
    package: str
    requires: Mapping[str, str]
    staging: str = ""
    variables: Mapping[str, str] | None = None

    def module_file(self, own: str = "") -> str:
        """Return the go.mod of an empty module that builds it; `own` is the part's, if it has staging."""
        lines = [f"module parts/{self.name}", "", f"go {GO}", "", "require ("]
        wanted = {self.module: self.version, **self.requires}
        lines += [f"\t{module} v{version}" for module, version in wanted.items()]
        lines.append(")")
        if self.staging:
            lines += ["", "replace ("]
            lines += [f"\t{module} => {module} v{self.staging}" for module in _STAGED.findall(own)]
            lines.append(")")
        return "\n".join(lines) + "\n"


def _kubernetes(name: str) -> Part:
    version = "1.36.3"
    variables = {
        f"{_VERSIONED}.gitVersion": f"v{version}",
        f"{_VERSIONED}.gitMajor": version.split(".")[0],
        f"{_VERSIONED}.gitMinor": version.split(".")[1],
        f"{_VERSIONED}.gitTreeState": "clean",
    }
    staging = version.replace("1.", "0.", 1)
    return Part(name, "k8s.io/kubernetes", version, f"k8s.io/kubernetes/cmd/{name}", {}, staging, variables)


def _istio(name: str) -> Part:
    # A pinned commit; releases of what its go.mod names by commits, which proxies of modules need not have.
    version = "0.0.0-20260827124520-eed52ebb66ad"
    requires = {
        "istio.io/api": "1.31.1",
        "istio.io/client-go": "1.31.1",
        "github.com/envoyproxy/go-control-plane/envoy": "1.40.0",
        "github.com/envoyproxy/go-control-plane/contrib": "1.36.1-0.20260729145720-a2d8c7492908",
    }
    return Part(name, "istio.io/istio", version, f"istio.io/istio/pilot/cmd/{name}", requires)


ETCD: Final = Part("etcd", "go.etcd.io/etcd/server/v3", "3.6.16", "go.etcd.io/etcd/server/v3", {})
API_SERVER: Final = _kubernetes("kube-apiserver")
CONTROLLERS: Final = _kubernetes("kube-controller-manager")
ISTIOD: Final = _istio("pilot-discovery")

PARTS: Final = {part.name: part for part in (ETCD, API_SERVER, CONTROLLERS, ISTIOD)}
"""All parts by name."""
