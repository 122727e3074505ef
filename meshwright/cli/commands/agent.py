"""`meshwright agent`: run a proxy beside its workload; its subcommands ask a running agent."""

from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed, NegativeAnswer, Status
from meshwright.cli.options import AdminPort, AsJson, Domain, admin_at, host_port
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_bytes
from meshwright.sidecars.layout import CHAIN_FILE, STATUS_PORT

# Files are checked by reading them: access(2), as Typer calls it, ignores rights from capabilities.
_NOT_ASKED: Final = False
_ADMIN_SECONDS: Final = 10.0
"""Longest wait for an answer of Envoy's admin interface."""
agent = typer.Typer(invoke_without_command=True)


@agent.callback()
def run(
    context: typer.Context,
    credentials: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_CREDENTIALS",
            help="Directory with the proxy's credentials: proxy.pem, proxy.key, ca.pem. "
            "Required. With --enrol, the agent writes the files.",
        ),
    ] = None,
    ads: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_ADS",
            metavar="HOST:PORT,...",
            help="Address of the control plane's ADS server. Required. Several, separated by commas, if "
            "several servers serve the mesh: Envoy begins with a random one, and goes on to the next "
            "when a server is lost.",
        ),
    ] = None,
    enrol: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_ENROL",
            metavar="HOST:PORT,...",
            help="Address of the enrolment server, to join the mesh. Needs --join-token or "
            "--kubernetes-token. Several, separated by commas: the agent tries the next one after a "
            "failure.",
        ),
    ] = None,
    join_token: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_JOIN_TOKEN",
            help="File with a join token, as `meshwright certs token create` writes it.",
        ),
    ] = None,
    kubernetes_token: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_KUBERNETES_TOKEN",
            help="File with a projected ServiceAccount token for the audience meshwright, to "
            "join from a Pod. Needs --ca.",
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(
            "--ca",
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_CA",
            help="File with the CA certificates that verify the enrolment server.",
            show_default="the pin in the join token",
        ),
    ] = None,
    renewal: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_RENEWAL",
            metavar="HOST:PORT,...",
            help="Address of the renewal server. The agent renews the certificate there, and "
            "reports Envoy's statistics. Several, separated by commas: the agent tries the next one "
            "after a failure.",
            show_default="no renewal",
        ),
    ] = None,
    trust_domain: Domain = None,
    run_directory: Annotated[
        Path,
        typer.Option(
            "--run",
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_RUN",
            help="Directory for the agent's own files, such as Envoy's bootstrap and admin socket.",
        ),
    ] = Path("/run/meshwright"),
    envoy: Annotated[
        str,
        typer.Option(envvar="MESHWRIGHT_ENVOY", help="Envoy program: a path, or a name to find in $PATH."),
    ] = "envoy",
    admin: AdminPort = None,
    status: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Listen address for probes and metrics. [::] accepts IPv4 and IPv6."
        ),
    ] = f"[::]:{STATUS_PORT}",
    protocol: Annotated[
        str, typer.Option(help="Variant of xDS: delta (incremental) or sotw (state of the world).")
    ] = "delta",
    application_port: Annotated[
        list[int] | None,
        typer.Option(
            help="Port of the application. The proxy is ready only when a listener serves this "
            "port. Repeat for more ports."
        ),
    ] = None,
    application_address: Annotated[
        str, typer.Option(help="Address at which the agent probes the application.")
    ] = "127.0.0.1",
    probes: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="JSON file with the application's probes. Each key is a path on the agent's "
            "server, each value a Kubernetes probe.",
        ),
    ] = None,
    application_metrics: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of the application's metrics. The agent merges them with Envoy's metrics.",
            show_default="Envoy's metrics only",
        ),
    ] = None,
    override: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="JSON file that the agent merges into Envoy's bootstrap. The agent watches the file.",
        ),
    ] = None,
    hosts_file: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="Hosts file in which the agent maintains the names of services, for example /etc/hosts.",
            show_default="none",
        ),
    ] = None,
    cluster_domain: Annotated[
        str, typer.Option(help="DNS domain of services, the last part of their names.")
    ] = "cluster.local",
    hot_restart: Annotated[
        bool, typer.Option(help="Replace Envoy without closing connections when the bootstrap changes.")
    ] = True,
    drain_seconds: Annotated[
        int,
        typer.Option(
            help="Seconds that connections of a removed listener, or of the old Envoy in a hot "
            "restart, get to finish (Envoy's --drain-time-s)."
        ),
    ] = 45,
    parent_shutdown_seconds: Annotated[
        int,
        typer.Option(
            help="Seconds after a hot restart until the old Envoy is stopped (Envoy's "
            "--parent-shutdown-time-s). Must be more than --drain-seconds."
        ),
    ] = 60,
    termination_least_seconds: Annotated[
        float,
        typer.Option(
            help="Minimum seconds to keep serving after SIGTERM, so that callers can learn of the shutdown."
        ),
    ] = 5.0,
    termination_most_seconds: Annotated[
        float,
        typer.Option(help="Maximum seconds to keep serving after SIGTERM while connections are in use."),
    ] = 45.0,
    concurrency: Annotated[
        int, typer.Option(help="Number of Envoy's worker threads. 0: one per processor.")
    ] = 0,
    envoy_log_level: Annotated[
        str, typer.Option(help="Log level of Envoy (Envoy's --log-level).")
    ] = "warning",
    log_level: Annotated[
        str, typer.Option(help="Log level of the agent: debug, info, warning or error.")
    ] = "info",
    shared_credentials: Annotated[
        bool,
        typer.Option(
            "--shared-credentials",
            envvar="MESHWRIGHT_SHARED_CREDENTIALS",
            help="Start even if other users can read the private key.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Log as JSON, even on a terminal.")] = False,
) -> None:
    r"""Run Envoy as the sidecar of a workload.

    Use this command on a virtual machine; in Kubernetes the injected Pod runs it.
    The agent starts Envoy, restarts it after a failure, and answers probes. With
    --renewal the agent also renews the certificate. For example, join the mesh
    with a token and run:

      meshwright agent --credentials /etc/meshwright/credentials \
          --ads control.example:15128 --enrol control.example:15130 \
          --join-token /etc/meshwright/token

    SIGTERM drains Envoy, then stops the agent. SIGHUP makes the agent read its
    files again.

    Exit status: 0 after SIGTERM, 1 if Envoy failed repeatedly, 2 if the agent
    could not start.
    """
    fields = dict(locals())  # all parameters by name, as in `meshwright unit`; must be the first statement
    if context.invoked_subcommand is not None:
        return
    from meshwright.cli.process.signals import not_hung_up

    # A reload by SIGHUP during the start must not end the process.
    not_hung_up()
    if credentials is None or ads is None:
        raise CommandFailed(
            "the agent needs its credentials and the control plane's address: give --credentials DIR and "
            "--ads HOST:PORT, or set MESHWRIGHT_CREDENTIALS and MESHWRIGHT_ADS"
        )
    from meshwright.cli.process.agent_settings import agent_settings
    from meshwright.cli.process.environment import of_program
    from meshwright.cli.process.handover import AgentCommandLine, become_agent

    # The last step: execve replaces the process, so that the command line's memory is freed.
    become_agent(AgentCommandLine(agent_settings(fields), log_level, as_json, of_program(context)))


@agent.command()
def wait(
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Status address of the agent.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    seconds: Annotated[float, typer.Option(help="Maximum seconds to wait.")] = 60.0,
    credentials: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="Credentials directory of the agent. Wait for this proxy only, if several "
            "agents run on the machine.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Wait until the proxy is ready.

    Use the command before starting an application that needs the mesh:

      meshwright agent wait --seconds 30 && exec my-application

    Exit status: 0 if the proxy is ready, 1 if it is not ready in time.
    """
    from meshwright.agent.certificates import proxy_name
    from meshwright.agent.credentials import CredentialsError
    from meshwright.agent.status.client import LONGEST_SECONDS
    from meshwright.agent.status.readiness_wait import LEAST_SECONDS, proxy_at, until_ready

    at = host_port("--status", status, STATUS_PORT)
    try:
        name = "" if credentials is None else str(proxy_name(credentials / CHAIN_FILE))
    except CredentialsError as error:
        raise CommandFailed(error) from error
    words = until_ready(at, seconds, name)
    answers = proxy_at(at, LEAST_SECONDS if words else LONGEST_SECONDS)
    if as_json:
        print_json({"ready": not words, "reasons": words, "proxy": answers or None})
    if words:
        raise NegativeAnswer(f"not ready after {seconds:g} s: {words}")
    if answers and not as_json:
        print_remarks(f"{answers} is ready")


@agent.command()
def status(
    at: Annotated[
        str, typer.Option("--status", metavar="HOST:PORT", help="Status address of the agent.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    as_json: AsJson = False,
) -> None:
    """Show the state of the proxy and of its connection to the control plane.

    Exit status: 0 if the proxy is ready and connected, 1 if it is not, 2 if the
    agent does not answer.
    """
    from meshwright.agent.status.client import AgentSilent, status_of
    from meshwright.agent.status.description import lines

    try:
        result = status_of(host_port("--status", at, STATUS_PORT))
    except AgentSilent as error:
        raise CommandFailed(error) from error
    if as_json:
        print_json(result)
    else:
        print_lines(*lines(result))
    if not (result["ready"] and result["control_plane"]["reached"]):
        raise typer.Exit(Status.NO)


@agent.command()
def drain(
    at: Annotated[
        str, typer.Option("--status", metavar="HOST:PORT", help="Status address of the agent.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    as_json: AsJson = False,
) -> None:
    """Ask callers to stop using this workload, and keep serving.

    The proxy tells callers to close their connections. Use the command in a
    preStop hook, before the workload stops.
    """
    from meshwright.agent.status.client import AgentSilent, drained

    try:
        drained(host_port("--status", at, STATUS_PORT))
    except AgentSilent as error:
        raise CommandFailed(error) from error
    if as_json:
        print_json({"draining": True})
    else:
        print_remarks("draining")


@agent.command()
def request(
    method: Annotated[str, typer.Argument(help="HTTP method: GET or POST.")],
    path: Annotated[
        str, typer.Argument(help="Path of the admin interface, for example /clusters or /config_dump.")
    ],
    run_directory: Annotated[
        Path,
        typer.Option(
            "--run",
            envvar="MESHWRIGHT_RUN",
            help="Directory of the agent's own files, where the admin socket is.",
        ),
    ] = Path("/run/meshwright"),
    admin: AdminPort = None,
    as_json: AsJson = False,
) -> None:
    """Send a request to Envoy's admin interface and print the response.

    For example, show the endpoints that Envoy knows:

      meshwright agent request GET /clusters

    Unless the agent was started with --admin, the interface is a Unix socket that
    only root and the agent's user can open.

    Exit status: 0 for a response with status 200, 1 for any other response, 2 if
    Envoy does not answer.
    """
    import http.client

    from meshwright.cli.socket.unix_http import UnixConnection

    if not path.startswith("/"):
        raise CommandFailed(f"the path is {path!r}: must begin with /, for example /clusters")
    at = admin_at(admin, run_directory)
    connection = (
        UnixConnection(at, _ADMIN_SECONDS)
        if isinstance(at, Path)
        else http.client.HTTPConnection(at.host, at.port, timeout=_ADMIN_SECONDS)
    )
    try:
        connection.request(method.upper(), path)
        response = connection.getresponse()
        body = response.read()
    except PermissionError as error:
        raise CommandFailed(
            f"cannot open Envoy's admin interface at {at}: only root and the agent's user may; run the "
            "command as one of them"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise CommandFailed(
            f"Envoy's admin interface at {at} does not answer: {error}; `meshwright agent status` shows if "
            "the agent runs"
        ) from error
    finally:
        connection.close()
    if as_json:
        print_json({"status": response.status, "body": body.decode("utf-8", "replace")})
    else:
        print_bytes(body)
    if response.status != 200:
        raise NegativeAnswer(f"{method.upper()} {path}: status {response.status}")
