"""`meshwright agent`: a proxy beside its workload; `meshwright agent request`: asking it."""

from pathlib import Path
from typing import Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed, NegativeAnswer, Status
from meshwright.cli.options import AdminPort, AsJson, Domain, admin_at, host_port
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_bytes
from meshwright.sidecars.layout import CHAIN_FILE, STATUS_PORT

# Reading says better than access(2) what may be read: that leaves out what a capability allows.
_NOT_ASKED: Final = False
_ADMIN_SECONDS: Final = 10.0
"""For an answer of Envoy's admin interface."""
agent = typer.Typer(help="Run Envoy beside a workload, and keep it.", invoke_without_command=True)


@agent.callback()
def run(
    context: typer.Context,
    credentials: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED, envvar="MESHWRIGHT_CREDENTIALS", help="With proxy.pem, proxy.key, ca.pem."
        ),
    ] = None,
    ads: Annotated[
        str | None, typer.Option(envvar="MESHWRIGHT_ADS", metavar="HOST:PORT", help="The control plane.")
    ] = None,
    enrol: Annotated[
        str | None,
        typer.Option(envvar="MESHWRIGHT_ENROL", metavar="HOST:PORT", help="Join there, by a token."),
    ] = None,
    join_token: Annotated[
        Path | None,
        typer.Option(readable=_NOT_ASKED, envvar="MESHWRIGHT_JOIN_TOKEN", help="A file with a join token."),
    ] = None,
    kubernetes_token: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_KUBERNETES_TOKEN",
            help="In a Pod: a projected token for the audience meshwright, with --ca.",
        ),
    ] = None,
    authority: Annotated[
        Path | None,
        typer.Option(
            "--ca",
            readable=_NOT_ASKED,
            envvar="MESHWRIGHT_CA",
            help="Roots of who is joined. [by the token's pin]",
        ),
    ] = None,
    renewal: Annotated[
        str | None,
        typer.Option(
            envvar="MESHWRIGHT_RENEWAL",
            metavar="HOST:PORT",
            help="Renew the certificate there, and tell what Envoy counts.",
        ),
    ] = None,
    trust_domain: Domain = None,
    run_directory: Annotated[
        Path,
        typer.Option(
            "--run", readable=_NOT_ASKED, envvar="MESHWRIGHT_RUN", help="Directory of the agent's own."
        ),
    ] = Path("/run/meshwright"),
    envoy: Annotated[str, typer.Option(envvar="MESHWRIGHT_ENVOY", help="Envoy itself.")] = "envoy",
    admin: AdminPort = None,
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Probes and metrics; [::] is both families.")
    ] = f"[::]:{STATUS_PORT}",
    protocol: Annotated[str, typer.Option(help="delta or sotw.")] = "delta",
    application_port: Annotated[
        list[int] | None, typer.Option(help="Not ready before a listener serves it; repeat for more.")
    ] = None,
    application_address: Annotated[
        str, typer.Option(help="Where probes find the application.")
    ] = "127.0.0.1",
    probes: Annotated[
        Path | None,
        typer.Option(readable=_NOT_ASKED, help="JSON: path of the agent to a probe as Kubernetes has it."),
    ] = None,
    application_metrics: Annotated[
        str | None, typer.Option(metavar="URL", help="Merged with Envoy's.")
    ] = None,
    override: Annotated[
        Path | None, typer.Option(readable=_NOT_ASKED, help="JSON laid over the bootstrap; watched.")
    ] = None,
    hosts_file: Annotated[
        Path | None,
        typer.Option(readable=_NOT_ASKED, help="Keep the names of services in it, such as /etc/hosts."),
    ] = None,
    cluster_domain: Annotated[str, typer.Option(help="The last part of services' names.")] = "cluster.local",
    hot_restart: Annotated[bool, typer.Option(help="A changed bootstrap loses no connection.")] = True,
    drain_seconds: Annotated[int, typer.Option(help="Envoy's --drain-time-s.")] = 45,
    parent_shutdown_seconds: Annotated[int, typer.Option(help="Envoy's --parent-shutdown-time-s.")] = 60,
    termination_least_seconds: Annotated[float, typer.Option(help="Serve on at least so long.")] = 5.0,
    termination_most_seconds: Annotated[
        float, typer.Option(help="Then until no connection is in use, at most so long.")
    ] = 45.0,
    concurrency: Annotated[int, typer.Option(help="Envoy's worker threads; 0 is one per processor.")] = 0,
    envoy_log_level: Annotated[str, typer.Option(help="Envoy's --log-level.")] = "warning",
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    shared_credentials: Annotated[
        bool,
        typer.Option(
            "--shared-credentials",
            envvar="MESHWRIGHT_SHARED_CREDENTIALS",
            help="Although others can read the key.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Log as JSON, wherever standard error goes.")
    ] = False,
) -> None:
    """Run Envoy beside a workload until SIGTERM, which drains it first; SIGHUP has it read its files again.

    Status: 0 if it was told to stop, 1 if Envoy failed again and again, 2 if it could not begin.
    """
    told = dict(locals())  # all that was typed, by name, as `meshwright unit` has it
    if context.invoked_subcommand is not None:
        return
    from meshwright.cli.process.signals import not_hung_up

    not_hung_up()
    if credentials is None or ads is None:
        raise CommandFailed(
            "--credentials and --ads are needed (or MESHWRIGHT_CREDENTIALS and MESHWRIGHT_ADS)"
        )
    from meshwright.cli.process.agent_settings import agent_settings
    from meshwright.cli.process.environment import of_program
    from meshwright.cli.process.handover import AgentCommandLine, become_agent

    become_agent(AgentCommandLine(agent_settings(told), log_level, as_json, of_program(context)))


@agent.command()
def wait(
    status: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="The agent's server.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    seconds: Annotated[float, typer.Option(help="At most so long.")] = 60.0,
    credentials: Annotated[
        Path | None, typer.Option(readable=_NOT_ASKED, help="The agent's: for this proxy, and no other.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Wait until the proxy is ready, for what must not begin before; status 1 if it does not become so."""
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
        say(f"{answers} is ready")


@agent.command()
def status(
    at: Annotated[
        str, typer.Option("--status", metavar="HOST:PORT", help="The agent's server.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    as_json: AsJson = False,
) -> None:
    """Say how the proxy is, and how it stands with its control plane; status 1 if either is not well."""
    from meshwright.agent.status.client import AgentSilent, status_of
    from meshwright.agent.status.description import lines

    try:
        found = status_of(host_port("--status", at, STATUS_PORT))
    except AgentSilent as error:
        raise CommandFailed(error) from error
    if as_json:
        print_json(found)
    else:
        print_lines(*lines(found))
    if not (found["ready"] and found["control_plane"]["reached"]):
        raise typer.Exit(Status.NO)


@agent.command()
def drain(
    at: Annotated[
        str, typer.Option("--status", metavar="HOST:PORT", help="The agent's server.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    as_json: AsJson = False,
) -> None:
    """Have the proxy discourage calls to its workload, and serve on: for a hook before that ends."""
    from meshwright.agent.status.client import AgentSilent, drained

    try:
        drained(host_port("--status", at, STATUS_PORT))
    except AgentSilent as error:
        raise CommandFailed(error) from error
    if as_json:
        print_json({"draining": True})
    else:
        say("draining")


@agent.command()
def request(
    method: Annotated[str, typer.Argument(help="GET or POST.")],
    path: Annotated[str, typer.Argument(help="Such as /clusters or /config_dump.")],
    run_directory: Annotated[
        Path, typer.Option("--run", envvar="MESHWRIGHT_RUN", help="The agent's own directory.")
    ] = Path("/run/meshwright"),
    admin: AdminPort = None,
    as_json: AsJson = False,
) -> None:
    """Call Envoy's admin interface and print the answer; status 1 if that is another than 200.

    It is a socket in the agent's directory, for its user and root alone, unless the agent was given --admin.
    """
    import http.client

    from meshwright.cli.socket.unix_http import UnixConnection

    if not path.startswith("/"):
        raise CommandFailed(f"the path is {path!r}: must begin with /")
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
            f"Envoy's admin at {at} is for the agent's user alone: run this as that user"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise CommandFailed(f"Envoy's admin at {at} does not answer: {error}") from error
    finally:
        connection.close()
    if as_json:
        print_json({"status": response.status, "body": body.decode("utf-8", "replace")})
    else:
        print_bytes(body)
    if response.status != 200:
        raise NegativeAnswer(f"{method.upper()} {path}: status {response.status}")
