"""`meshwright log-level`: show or change the log levels of a running server or agent."""

import http.client
import json
from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed, ServerRefused
from meshwright.cli.options import AsJson, host_port
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json
from meshwright.cli.socket.client import ask
from meshwright.sidecars.layout import STATUS_PORT

_PATH = "/logging"
_SECONDS = 10.0


def log_level(
    level: Annotated[
        str | None,
        typer.Argument(
            help="New level: debug, info, warning or error; `default` resets a logger.",
            show_default="show the levels",
        ),
    ] = None,
    logger: Annotated[
        str,
        typer.Option(
            help="Logger or package to change or show, for example delivery or xds.server.",
            show_default="all",
        ),
    ] = "",
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_STATE",
            help="State directory of the running server, for example /var/lib/meshwright.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Status address of an agent, to change the agent's level instead of the server's.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show or change the log level of a running server or agent, until it stops.

    For example, debug one package of the server:

      meshwright log-level debug --logger xds.server --state /var/lib/meshwright

    Exit status: 0, or 2 if the level or the logger is unknown, or the program
    does not answer.
    """
    body = None if level is None else {"logger": logger, "level": None if level == "default" else level}
    if agent is not None:
        result = _ask_agent(agent, body)
    elif state is not None:
        result = ask(state, "GET" if body is None else "POST", _PATH, body=body)
    else:
        raise CommandFailed(
            "a program is required: give --state DIR for a server (or set MESHWRIGHT_STATE), or --agent "
            "HOST:PORT for an agent"
        )
    levels = result.get("levels") if isinstance(result, dict) else None
    if as_json or not isinstance(levels, dict):
        print_json(result)
        return
    for name, item in levels.items():
        if not logger or name in ("", logger):
            print_lines(f"{name or 'everything else'}: {item}")


def _ask_agent(address: str, body: object) -> object:
    at = host_port("--agent", address, STATUS_PORT)
    connection = http.client.HTTPConnection(at.host, at.port, timeout=_SECONDS)
    try:
        connection.request(
            "GET" if body is None else "POST", _PATH, None if body is None else json.dumps(body)
        )
        response = connection.getresponse()
        text = response.read()
        answer: object = (
            json.loads(text)
            # The agent's 403 is plain text; its other answers are JSON.
            if response.status != http.HTTPStatus.FORBIDDEN
            else {"error": text.decode().strip()}
        )
    except ConnectionRefusedError as error:
        raise CommandFailed(
            f"no meshwright agent answers at {address}: start the agent, or give its --status address"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ServerRefused(f"the agent did not answer as expected: {error}") from error
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise ServerRefused(str(reason or f"status {response.status}"))
    return answer
