"""Options that several commands have."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import TrustDomain, is_dns_subdomain
from meshwright.mesh.server_addresses import server_addresses as parsed_addresses
from meshwright.sidecars.layout import ADMIN_PORT, ADMIN_SOCKET

AdminPort = Annotated[
    str | None,
    typer.Option(
        "--admin",
        metavar="HOST:PORT",
        help="TCP address of Envoy's admin interface. Every user of the machine can connect to a TCP port.",
        show_default="a Unix socket in --run, for the agent's user only",
    ),
]
State = Annotated[
    Path,
    typer.Option(
        envvar="MESHWRIGHT_STATE",
        help="State directory of the server, for example /var/lib/meshwright.",
        show_default=False,
    ),
]
Trust = Annotated[
    str,
    typer.Option(
        envvar="MESHWRIGHT_TRUST_DOMAIN", help="Trust domain of the mesh. Used only without a running server."
    ),
]
Domain = Annotated[
    str | None,
    typer.Option(
        "--trust-domain",
        envvar="MESHWRIGHT_TRUST_DOMAIN",
        metavar="NAME",
        help="SPIFFE trust domain of the mesh.",
        show_default="from the file trust-domain beside ca.pem, or from the roots",
    ),
]
Shared = Annotated[
    bool,
    typer.Option(
        "--shared-state",
        envvar="MESHWRIGHT_SHARED_STATE",
        help="Use the state directory even if other users can read it.",
    ),
]
Kubernetes = Annotated[
    bool,
    typer.Option(
        "--kubernetes",
        help="Read the mesh from a Kubernetes cluster. Manifests are then evaluated as if they were "
        "applied to the cluster, which is not changed.",
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="MESHWRIGHT_KUBECONFIG",
        help="Kubeconfig file of the cluster.",
        show_default="the Pod's ServiceAccount, else as kubectl",
    ),
]
Context = Annotated[
    str,
    typer.Option(
        "--context",
        "--kube-context",
        envvar="MESHWRIGHT_KUBE_CONTEXT",
        help="Context of the kubeconfig file.",
        show_default="the current context",
    ),
]
Namespaces = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        envvar="MESHWRIGHT_NAMESPACES",
        help="Namespaces of the cluster to read, separated by commas.",
        show_default="all",
    ),
]
Selector = Annotated[
    str,
    typer.Option(
        "--namespace-selector",
        metavar="SELECTOR",
        envvar="MESHWRIGHT_NAMESPACE_SELECTOR",
        help="Label selector for the namespaces to read, for example team=shop.",
        show_default="all",
    ),
]
ControlPlane = Annotated[
    str,
    typer.Option(
        "--control-plane-namespace",
        metavar="NAME",
        envvar="POD_NAMESPACE",
        help="Namespace of the control plane. A MeshConfig in this namespace is in force.",
        show_default="meshwright-system",
    ),
]
Replica = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Only the answer of one server, if the mesh has several. `meshwright replicas` lists them.",
        show_default="all servers",
    ),
]
_OF_A_CLUSTER: Final = {
    "kubeconfig": "--kubeconfig",
    "context": "--context",
    "namespaces": "--namespaces",
    "selector": "--namespace-selector",
    "control_plane": "--control-plane-namespace",
}
"""Options of a cluster, by the names of their parameters."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for use in programs.")]


def require_cluster(typed: typer.Context) -> None:
    """Raise CommandFailed if an option of a cluster is typed without --kubernetes.

    Only the command line is checked: a variable in the environment may be meant for other commands.
    """
    for name, flag in _OF_A_CLUSTER.items():
        source = typed.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and not typed.params["kubernetes"]:
            raise CommandFailed(
                f"{flag} requires --kubernetes: add --kubernetes to read a cluster, or remove {flag}"
            )


def host_port(flag: str, text: str, example: int = 9092) -> HostPort:
    """Read `HOST:PORT`, for example `localhost:9092`; raise CommandFailed with the flag's name.

    `example` is the port in the example of the error.
    """
    try:
        return HostPort.parse(text, example)
    except ValueError as error:
        raise CommandFailed(f"{flag} is {text!r}: {error}") from error


def server_addresses(flag: str, text: str, example: int) -> tuple[HostPort, ...]:
    """Read the addresses of servers, separated by commas; raise CommandFailed with the flag's name.

    `example` is the port in the example of the error.
    """
    try:
        return parsed_addresses(text, example)
    except ValueError as error:
        raise CommandFailed(f"{flag} is {text!r}: {error}") from error


def admin_at(port: str | None, run: Path) -> HostPort | Path:
    """Return the address of an Envoy's admin interface: HOST:PORT if given, else the socket in `run`.

    Raises CommandFailed for text of any other form.
    """
    return run.absolute() / ADMIN_SOCKET if port is None else host_port("--admin", port, ADMIN_PORT)


def trust_domain_of(text: str | None) -> TrustDomain | None:
    """Return a trust domain, or None if the option is not given; raise CommandFailed for an invalid name."""
    if text is None:
        return None
    if not is_dns_subdomain(text):
        raise CommandFailed(
            f"--trust-domain is {text!r}: must be a DNS name in lower case, for example cluster.local"
        )
    return TrustDomain(text)


_TOKEN: Final = re.compile(r"[0-9a-f]{12}\.[\w-]{43}(\.[0-9a-f]+)*|eyJ[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)
"""A join token, or a ServiceAccount token (a JSON web token)."""


def require_file(flag: str, path: Path | None) -> None:
    """Raise CommandFailed if a token was given in place of the path of its file.

    The error does not repeat the token, because errors end in logs.
    """
    if path is not None and _TOKEN.fullmatch(str(path)):
        raise CommandFailed(
            f"{flag} is a token, but must be the path of a file with the token (mode 0600), because every "
            "user of this machine can read command lines: revoke this token, and write a new one to a file"
        )
