"""The Gateway API's conformance suite as a program: its image, one run, and the results of its tests.

The suite applies its own namespaces and Pods, and removes them at its end. Its requests are made by
`kubectl exec` in its Pods, so it runs in the network of the node.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from meshwright.mesh.gateway.features import EXTENDED
from tools.real_parts.building import program
from tools.real_parts.images.archives import Image
from tools.real_parts.images.layers import Files, Link
from tools.real_parts.keys import Keys
from tools.real_parts.node import Node
from tools.real_parts.parts import GATEWAY_BACKEND, GATEWAY_CONFORMANCE, GATEWAY_ECHO

NAMESPACES: Final = ("gateway-conformance-mesh", "gateway-conformance-mesh-consumer")
"""Namespaces of the suite's Pods; the second one is for routes of a caller's namespace."""
PROFILES: Final = ("MESH-HTTP", "MESH-GRPC")
GATEWAY_PROFILES: Final = ("GATEWAY-HTTP", "GATEWAY-GRPC", "GATEWAY-TLS", "GATEWAY-TCP")
OUTSIDE: Final = (
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteParentRefPort",
    "HTTPRouteResponseHeaderModification",
)
"""Features of tests for meshes that belong to no profile, and so to no report."""

_ECHO: Final = "registry.k8s.io/gateway-api/conformance/echo-advanced:v0.1.0"
_BACKEND: Final = "registry.k8s.io/gateway-api/conformance/echo-basic:{}"
_BACKEND_TAGS: Final = ("v0.1.0", "v0.2.0")
"""Tags that the suite's manifests name; the second one is for UDP alone."""
_RESULT: Final = re.compile(r"^    --- (PASS|FAIL|SKIP): TestConformance/(\w+) \(", re.MULTILINE)


class Outcome(Enum):
    """Result of one test of the suite; a test without its features is skipped."""

    PASSED = "PASS"
    FAILED = "FAIL"
    SKIPPED = "SKIP"


@dataclass(frozen=True, slots=True)
class Implementation:
    """The details of an implementation that a report must have."""

    version: str
    organization: str = "meshwright"
    project: str = "meshwright"
    url: str = "https://meshwright.dev/"
    contact: str = "the maintainers"

    def flags(self) -> list[str]:
        """Return the flags of the suite with these details."""
        names = ("version", "organization", "project", "url", "contact")
        return [f"-{name}={getattr(self, name)}" for name in names]


@dataclass(frozen=True, slots=True)
class Choice:
    """The tests of a run, by profiles, features, and names that are left out; and the labels of namespaces.

    Without features the suite takes those in the status of the GatewayClass. `only` is the name of a single
    test to run; empty for all. `mode` is the mode of operation in the report. `patience` is the time limit in
    seconds for an answer as expected; 0 for the suite's own, half a minute. `usable` and `unusable` are
    addresses that a Gateway can have, and cannot have.
    """

    profiles: tuple[str, ...] = PROFILES
    features: tuple[str, ...] = (*EXTENDED, *OUTSIDE)
    left_out: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    patience: int = 0
    gateway_class: str = ""
    only: str = ""
    mode: str = ""
    usable: str = ""
    unusable: str = ""

    def flags(self) -> list[str]:
        """Return the flags of the suite for this choice."""
        words = {
            "conformance-profiles": ",".join(self.profiles),
            "supported-features": ",".join(self.features),
            "skip-tests": ",".join(self.left_out),
            "namespace-labels": _pairs(self.labels),
            "namespace-annotations": _pairs(self.annotations),
            "gateway-class": self.gateway_class,
            "run-test": self.only,
            "mode": self.mode,
            "usable-address": self.usable,
            "unusable-address": self.unusable,
            "timeout-config-overrides": f"MaxTimeToConsistency:{self.patience}" if self.patience else "",
        }
        return [f"-{name}={value}" for name, value in words.items() if value]


@dataclass(frozen=True, slots=True)
class Results:
    """Results of a run: the outcome of each test by name, and everything that the suite has printed."""

    outcomes: Mapping[str, Outcome]
    output: str

    def names(self, outcome: Outcome) -> set[str]:
        """Return the names of the tests with this outcome."""
        return {name for name, one in self.outcomes.items() if one is outcome}


def run(node: Node, choice: Choice, report: Path, implementation: Implementation, seconds: float) -> Results:
    """Run the suite to its end, and write its report.

    Raises AssertionError if the suite ended without the result of any test, for example because its Pods
    have not started.
    """
    flags = [*choice.flags(), *implementation.flags(), f"-report-output={report}"]
    command = [*node.cluster.enter, str(program(GATEWAY_CONFORMANCE)), "-test.v", "-test.timeout=0", *flags]
    environment = {"KUBECONFIG": str(node.cluster.kubeconfig), "PATH": os.environ["PATH"]}
    with (report.parent / "suite.log").open("w+b") as log:
        subprocess.run(
            command,
            cwd=report.parent,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
        log.seek(0)
        output = log.read().decode(errors="replace")
    outcomes = parse(output)
    assert any(one is not Outcome.SKIPPED for one in outcomes.values()), output[-4000:]
    return Results(outcomes, output)


def parse(output: str) -> dict[str, Outcome]:
    """Return the outcome of each test from the suite's output."""
    return {name: Outcome(word) for word, name in _RESULT.findall(output)}


def backends() -> tuple[Image, ...]:
    """Return the images of the suite's Pods behind gateways."""
    server = "/echo-basic"
    files: Files = {server: program(GATEWAY_BACKEND)}
    return tuple(Image(_BACKEND.format(tag), files, entrypoint=(server,)) for tag in _BACKEND_TAGS)


def echo(folder: Path) -> Image:
    """Return the image of the suite's Pods, with a certificate whose files are written into a new folder."""
    keys = Keys(folder)
    keys.issue("echo", "echo")
    server = "/usr/local/bin/server"
    files: Files = {
        server: program(GATEWAY_ECHO),
        "/usr/local/bin/client": Link("server"),
        "/cert.crt": folder / "echo.crt",
        "/cert.key": folder / "echo.key",
    }
    return Image(_ECHO, files, entrypoint=(server,))


def _pairs(values: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())
