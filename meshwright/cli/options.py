"""Options that several commands have."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain, is_dns_subdomain
from meshwright.sidecars.layout import ADMIN_PORT, ADMIN_SOCKET

AdminPort = Annotated[
    str | None,
    typer.Option(
        "--admin",
        metavar="HOST:PORT",
        help="Envoy's admin at a port, for every user of the machine.",
        show_default="a socket in --run, for the agent's user alone",
    ),
]
State = Annotated[
    Path, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the server.", show_default=False)
]
Trust = Annotated[
    str, typer.Option(envvar="MESHWRIGHT_TRUST_DOMAIN", help="Of the state directory, if no server runs.")
]
Domain = Annotated[
    str | None,
    typer.Option(
        "--trust-domain",
        envvar="MESHWRIGHT_TRUST_DOMAIN",
        metavar="NAME",
        help="The mesh's. [by the file trust-domain, or the roots]",
    ),
]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared-state", envvar="MESHWRIGHT_SHARED_STATE", help="Although others can read the directory."
    ),
]
Kubernetes = Annotated[bool, typer.Option("--kubernetes", help="What a Kubernetes cluster has, first.")]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="MESHWRIGHT_KUBECONFIG", help="How it is reached.", show_default="as kubectl's, or a Pod's"
    ),
]
Context = Annotated[
    str, typer.Option("--context", "--kube-context", envvar="MESHWRIGHT_KUBE_CONTEXT", help="Of that file.")
]
Namespaces = Annotated[
    str, typer.Option(metavar="NAME,...", envvar="MESHWRIGHT_NAMESPACES", help="Of the cluster, these alone.")
]
Selector = Annotated[
    str,
    typer.Option(
        "--namespace-selector",
        metavar="SELECTOR",
        envvar="MESHWRIGHT_NAMESPACE_SELECTOR",
        help="The same, by labels of theirs.",
    ),
]
ControlPlane = Annotated[
    str,
    typer.Option(
        "--control-plane-namespace",
        metavar="NAME",
        envvar="POD_NAMESPACE",
        help="Where the server is: a MeshConfig there counts.",
        show_default="meshwright-system",
    ),
]
_OF_A_CLUSTER: Final = {
    "kubeconfig": "--kubeconfig",
    "context": "--context",
    "namespaces": "--namespaces",
    "selector": "--namespace-selector",
    "control_plane": "--control-plane-namespace",
}
"""Options by the names of their parameters."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def require_cluster(typed: typer.Context) -> None:
    """Raise CommandFailed where an option of a cluster is typed, and not --kubernetes.

    It would be without effect. In the environment it may stand for other commands.
    """
    for name, flag in _OF_A_CLUSTER.items():
        source = typed.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and not typed.params["kubernetes"]:
            raise CommandFailed(f"{flag} is of a cluster, and none is asked: give --kubernetes as well")


def host_port(flag: str, text: str, example: int = 9092) -> HostPort:
    """Read `HOST:PORT`; raise CommandFailed, which names the flag."""
    try:
        return HostPort.parse(text, example)
    except ValueError as error:
        raise CommandFailed(f"{flag} is {text!r}: {error}") from error


def admin_at(port: str | None, run: Path) -> HostPort | Path:
    """Return where an agent's Envoy has its admin interface; raise CommandFailed for what is no HOST:PORT."""
    return run.absolute() / ADMIN_SOCKET if port is None else host_port("--admin", port, ADMIN_PORT)


def trust_domain_of(text: str | None) -> TrustDomain | None:
    """Read a trust domain that may have been told; raise CommandFailed."""
    if text is None:
        return None
    if not is_dns_subdomain(text):
        raise CommandFailed(
            f"--trust-domain is {text!r}: must be a DNS name in lower case, such as cluster.local"
        )
    return TrustDomain(text)


_TOKEN: Final = re.compile(r"[0-9a-f]{12}\.[\w-]{43}(\.[0-9a-f]+)*|eyJ[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
"""A join token, or a ServiceAccount's."""


def require_file(flag: str, path: Path | None) -> None:
    """Raise CommandFailed for a token in the place of the file that has it: nothing may say it again."""
    if path is not None and _TOKEN.fullmatch(str(path)):
        raise CommandFailed(
            f"{flag} is a token, and must be a file that holds it (0600): everybody here can read what a "
            "program is told; revoke the token, and make another"
        )
