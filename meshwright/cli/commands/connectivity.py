"""`meshwright connectivity`: compare policy with the real result of a request, step by step."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.options import AsJson, host_port
from meshwright.cli.printing.responses import Found, print_json, with_remarks
from meshwright.cli.process.standard_streams import read_text
from meshwright.cli.socket.client import api
from meshwright.sidecars.layout import STATUS_PORT

if TYPE_CHECKING:
    from meshwright.agent.calling.outcomes import RequestOutcome
    from meshwright.cli.connectivity.facts import Agent, Facts


def connectivity(
    method: Annotated[str, typer.Argument(help="HTTP method of the request.")] = "GET",
    path: Annotated[str, typer.Argument(help="Path of the request, with the query if there is one.")] = "/",
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NS/SERVICEACCOUNT",
            help="Calling identity: namespace and ServiceAccount, for example shop/buyer.",
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option(metavar="NS/SERVICE[:PORT]", help="Called service and port, for example shop/store:80."),
    ] = "",
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="Request header. Repeat for more.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_STATE",
            help="State directory of the running server, for example /var/lib/meshwright.",
        ),
    ] = None,
    facts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|JSON",
            help="Output of `meshwright connectivity --json` from the server's machine: a file, "
            "- for standard input, or the JSON itself.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Status address of the caller's agent, on this machine.")
    ] = f"127.0.0.1:{STATUS_PORT}",
    no_request: Annotated[
        bool, typer.Option("--no-request", help="Compare configurations only, without a request.")
    ] = False,
    seconds: Annotated[float, typer.Option(help="Maximum seconds to wait for the response.", min=0.1)] = 6.0,
    as_json: AsJson = False,
) -> None:
    """Compare what policy says about a call with what both sidecars really do.

    The command also sends one real request, as the caller's application would:
    run it where the caller's agent is. The called application handles the request
    like any other. For example:

      meshwright connectivity GET /books --from shop/buyer --to shop/store:80

    If the server runs on another machine, run the command there with --json and
    --no-request, and give its output here with --facts.

    Exit status: 0 if all is as policy says, even if that is a denial; 1 if
    something differs; 2 if the command could not find out.
    """
    result = (
        _read_facts(facts)
        if facts is not None
        else _request_facts(state, source, to, method, path, header or [])
    )
    _print_result(result, None if no_request else agent, seconds, as_json=as_json)


def _request_facts(
    state: Path | None, source: str, to: str, method: str, path: str, headers: list[str]
) -> Found:
    """Request the policy and the proxies' states for this request from the running server."""
    if state is None:
        raise CommandFailed(
            "a server is required: give --state DIR of the running server, or --facts FILE with the output "
            "of `meshwright connectivity --json` from the server's machine"
        )
    if not (source and to):
        raise CommandFailed(
            "the call is not complete: give --from NAMESPACE/SERVICEACCOUNT and --to NAMESPACE/SERVICE:PORT"
        )
    query = {"from": source, "to": to, "method": method, "path": path}
    pairs = [*query.items(), *(("header", header) for header in headers)]
    return with_remarks(api(state, "/connectivity", pairs))


def _read_facts(facts: str) -> Found:
    """Read the facts from a file, from standard input, or from `facts` itself if beginning with `{`."""
    is_json = facts.lstrip().startswith("{")
    named = "--facts" if is_json else facts
    try:
        result = json.loads(facts if is_json else _read(facts))["facts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandFailed(
            f"{named} is not the output of `meshwright connectivity --json`: {error}; run that command on "
            "the server's machine again"
        ) from error
    return result if isinstance(result, dict) else {}


def _read(file: str) -> str:
    return read_text() if file == "-" else Path(file).read_text("utf-8")


def _print_result(result: Found, agent_at: str | None, seconds: float, *, as_json: bool) -> None:
    """Send the request, judge all steps, and print them."""
    from meshwright.cli.connectivity.facts import read_facts
    from meshwright.cli.connectivity.printing import document, text
    from meshwright.cli.connectivity.steps import status, steps
    from meshwright.cli.connectivity.verdict import Verdict

    try:
        facts = read_facts(result)
    except ValueError as error:
        raise CommandFailed(
            f"the server's answer cannot be read: {error}; use the `meshwright` of the server's version"
        ) from error
    agent, seen = (None, None) if agent_at is None else _tried(facts, agent_at, seconds)
    judged = steps(facts, agent, seen)
    if as_json:
        print_json(document(facts, judged, seen) | {"facts": result})
    else:
        sys.stdout.write(text(facts, judged))
    match status(judged):
        case Status.YES:
            pass
        case Status.NO:
            raise typer.Exit(Status.NO)
        case Status.UNKNOWN:
            raise CommandFailed(
                next(step.judged.text for step in judged if step.judged.verdict is Verdict.UNKNOWN)
            )


def _tried(facts: "Facts", at: str, seconds: float) -> "tuple[Agent | None, RequestOutcome]":
    """Ask the caller's agent, and send the request; the outcome has the reason if no request can be sent."""
    from meshwright.agent.calling.request import Call, made
    from meshwright.agent.status.client import AgentSilent, status_of
    from meshwright.cli.connectivity.facts import read_agent
    from meshwright.cli.connectivity.request import not_tried, planned

    try:
        agent = read_agent(at, status_of(host_port("--agent", at, STATUS_PORT)))
    except AgentSilent as error:
        return None, not_tried(str(error))
    plan = planned(facts, agent, seconds)
    return agent, made(plan) if isinstance(plan, Call) else plan
