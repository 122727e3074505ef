"""Parts: programs of Go modules at pinned versions.

To add a part, add an entry below. Some modules cannot be built by their own go.mod from outside: Kubernetes
replaces its staging modules by folders, and Istio names commits that module proxies do not have. Their
entries give replacements.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

GO: Final = "1.26.0"
"""Version of the Go language for all parts."""

_NEWER_GO: Final = "1.27.3"
"""Version of Go that the Gateway API's conformance suite requires; it is downloaded as a module."""
_GATEWAY_API: Final = "sigs.k8s.io/gateway-api"
_GATEWAY_VERSION: Final = "1.7.0"
_STAGED: Final = re.compile(r"^\t(\S+) => \./staging/", re.MULTILINE)
_KUBERNETES: Final = "k8s.io/kubernetes"
_VERSIONED: Final = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Part:
    """A program: module and version, the package to build, and further settings of the build.

    `requires` are modules in other versions than in the part's go.mod. `staging` is the version of modules
    that the part's go.mod replaces by folders; empty if there are none. `variables` are set by the linker.
    With `source` the part is a program of our own in package `.`, which uses the module as a library;
    `is_test` says that it is a test of Go. `replaces` are modules whose named version no proxy has, with the
    version to take instead. `toolchain` is the version of Go to compile with; empty for the installed one.
    `folder` is a folder of the module to keep with the program. `home` is the folder of the cache with the
    program; empty for the cache itself.
    """

    name: str
    module: str
    version: str
    package: str
    requires: Mapping[str, str]
    staging: str = ""
    variables: Mapping[str, str] | None = None
    source: str = ""
    folder: str = ""
    home: str = ""
    is_test: bool = False
    replaces: Mapping[str, str] | None = None
    toolchain: str = ""

    @property
    def stamp(self) -> str:
        """Return the stamp of a built program: the version, and a digest of the source if we wrote it."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return f"{self.version} {digest}" if self.source else self.version

    def module_file(self, own: str = "") -> str:
        """Return the go.mod of an empty module that builds the part.

        `own` is the part's go.mod, if it has staging.
        """
        lines = [f"module parts/{self.name}", "", f"go {self.toolchain or GO}", "", "require ("]
        wanted = {self.module: self.version, **self.requires}
        lines += [f"\t{module} v{version}" for module, version in wanted.items()]
        lines.append(")")
        replaces = dict.fromkeys(_STAGED.findall(own), self.staging) if self.staging else self.replaces
        if replaces:
            lines += ["", "replace ("]
            lines += [f"\t{module} => {module} v{version}" for module, version in replaces.items()]
            lines.append(")")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """A version of Kubernetes for tests, for example 1.36.3, and the home of its programs (`Part.home`)."""

    version: str
    home: str = ""

    @property
    def minor(self) -> str:
        """Return the minor version, for example 1.36."""
        return self.version.rpartition(".")[0]

    def part(self, name: str) -> Part:
        """Return a program of this version, for example kube-apiserver."""
        major, minor, _ = self.version.split(".")
        variables = {
            f"{_VERSIONED}.gitVersion": f"v{self.version}",
            f"{_VERSIONED}.gitMajor": major,
            f"{_VERSIONED}.gitMinor": minor,
            f"{_VERSIONED}.gitTreeState": "clean",
        }
        return Part(
            name,
            _KUBERNETES,
            self.version,
            f"{_KUBERNETES}/cmd/{name}",
            {},
            self.version.replace("1.", "0.", 1),
            variables,
            home=self.home,
        )

    def own(self, part: Part) -> Part:
        """Return the same program in this version; a program of another project stays as it is."""
        return self.part(part.name) if part.module == _KUBERNETES else part


KUBERNETES: Final = Kubernetes("1.36.3")
"""The default version, with which all tests run."""
OTHERS: Final = (Kubernetes("1.37.2", "kubernetes-1.37"), Kubernetes("1.35.4", "kubernetes-1.35"))
"""Other supported versions, with which the tests without a node run (`make test-kubernetes-versions`)."""


def _coredns(*plugins: str) -> Part:
    # CoreDNS's own program has the plugins of every cloud and takes twice as long to build.
    module, version = "github.com/coredns/coredns", "1.14.2"
    imports = "".join(f'\t_ "{module}/plugin/{plugin}"\n' for plugin in plugins)
    source = (
        f'package main\n\nimport (\n{imports}\t"{module}/coremain"\n)\n\nfunc main() {{ coremain.Run() }}\n'
    )
    return Part("coredns", module, version, ".", {}, source=source)


def _cert_manager() -> Part:
    module, version = "github.com/cert-manager/cert-manager", "1.21.2"
    source = (Path(__file__).parent / "cert_manager" / "main.go").read_text("utf-8")
    return Part("cert-manager", module, version, ".", {}, source=source, folder="deploy/crds")


def _collector() -> Part:
    # The official programs are not available as modules, or contain the components of every vendor.
    module, version = "go.opentelemetry.io/collector", "0.165.0"
    source = (Path(__file__).parent / "collector" / "main.go").read_text("utf-8")
    requires = {f"{module}/{each}": version for each in ("receiver/otlpreceiver", "exporter/debugexporter")}
    return Part("collector", f"{module}/otelcol", version, ".", requires, source=source)


def _helm() -> Part:
    # Without a cluster Helm assumes this version of Kubernetes for charts; its own default is an old version.
    module = "helm.sh/helm/v3"
    known = {
        f"{module}/pkg/{package}.k8sVersion{part}": value
        for package in ("chartutil", "lint/rules")
        for part, value in (("Major", "1"), ("Minor", "36"))
    }
    return Part("helm", module, "3.22.0", f"{module}/cmd/helm", {}, variables=known)


def _istio(name: str) -> Part:
    # A pinned commit. Its go.mod names some modules by commits, which module proxies may not have, so
    # releases are used for these.
    version = "0.0.0-20260827124520-eed52ebb66ad"
    requires = {
        "istio.io/api": "1.31.1",
        "istio.io/client-go": "1.31.1",
        "github.com/envoyproxy/go-control-plane/envoy": "1.40.0",
        "github.com/envoyproxy/go-control-plane/contrib": "1.36.1-0.20260729145720-a2d8c7492908",
    }
    return Part(name, "istio.io/istio", version, f"istio.io/istio/pilot/cmd/{name}", requires)


def _gateway_definitions(name: str, channel: str) -> Part:
    # The program does nothing: the definitions come without the suite, which takes minutes to build.
    source = "package main\n\nfunc main() {}\n"
    return Part(
        name,
        _GATEWAY_API,
        _GATEWAY_VERSION,
        ".",
        {},
        source=source,
        folder=f"config/crd/{channel}",
        toolchain=_NEWER_GO,
    )


def _gateway_conformance() -> Part:
    # The suite is a library of tests. It names a version of its images that module proxies do not have.
    module, version = _GATEWAY_API, _GATEWAY_VERSION
    source = (Path(__file__).parent / "gateway_conformance" / "main_test.go").read_text("utf-8")
    return Part(
        "gateway-conformance.test",
        module,
        version,
        ".",
        {f"{module}/conformance": version},
        source=source,
        folder="config/crd/standard",
        is_test=True,
        replaces={f"{module}-conformance-images": "0.1.0"},
        toolchain=_NEWER_GO,
    )


def _gateway_echo() -> Part:
    # The image of the suite's Pods in a mesh has Istio's test server, which takes as long to build as istiod.
    source = (Path(__file__).parent / "gateway_echo" / "main.go").read_text("utf-8")
    # The version of cert-manager's, which is compiled already.
    return Part("gateway-echo", "google.golang.org/grpc", "1.83.2", ".", {}, source=source)


def _gateway_backend() -> Part:
    module, version = "sigs.k8s.io/gateway-api-conformance-images", "0.1.0"
    return Part("gateway-backend", module, version, f"{module}/echo-basic", {}, toolchain=_NEWER_GO)


ETCD: Final = Part("etcd", "go.etcd.io/etcd/server/v3", "3.6.16", "go.etcd.io/etcd/server/v3", {})
API_SERVER: Final = KUBERNETES.part("kube-apiserver")
CONTROLLERS: Final = KUBERNETES.part("kube-controller-manager")
SCHEDULER: Final = KUBERNETES.part("kube-scheduler")
KUBELET: Final = KUBERNETES.part("kubelet")
KUBE_PROXY: Final = KUBERNETES.part("kube-proxy")
COREDNS: Final = _coredns("bind", "errors", "kubernetes", "ready")
CERT_MANAGER: Final = _cert_manager()
ISTIOD: Final = _istio("pilot-discovery")
HELM: Final = _helm()

COLLECTOR: Final = _collector()
"""OpenTelemetry's collector: receives OTLP and writes the data to its log."""

GATEWAY_DEFINITIONS: Final = _gateway_definitions("gateway-definitions", "standard")
"""The Gateway API's CustomResourceDefinitions of the standard channel, as a shared folder."""
GATEWAY_EXPERIMENTS: Final = _gateway_definitions("gateway-experiments", "experimental")
"""Those of the experimental channel, which has further kinds."""
GATEWAY_CONFORMANCE: Final = _gateway_conformance()
"""Conformance suite of the Gateway API, with the definitions of the standard channel."""
GATEWAY_ECHO: Final = _gateway_echo()
"""Server and client of the suite's Pods in a mesh."""
GATEWAY_BACKEND: Final = _gateway_backend()
"""Server of the suite's Pods behind gateways."""

NODE: Final = (SCHEDULER, KUBELET, KUBE_PROXY, COREDNS)
"""Further programs of a cluster with a node."""

GATEWAY: Final = (GATEWAY_CONFORMANCE, GATEWAY_ECHO, GATEWAY_BACKEND)
"""Programs of the conformance suite of the Gateway API."""

_ALL: Final = (
    ETCD,
    API_SERVER,
    CONTROLLERS,
    CERT_MANAGER,
    *NODE,
    HELM,
    COLLECTOR,
    ISTIOD,
    GATEWAY_DEFINITIONS,
    GATEWAY_EXPERIMENTS,
    *GATEWAY,
)
PARTS: Final = {part.name: part for part in _ALL}
"""All parts by name."""
