"""`meshwright explain`: why one call may pass or not, from a directory or from the running server."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cli.client import ask
from cli.errors import CommandFailed, Status
from cli.options import AsJson
from cli.printing.answers import Found, print_json, records, texts

_INDENT = "  "
_IN_FORCE = {
    "yes": "it is in force: the sidecars have acknowledged it",
    "no": "policy is not in force:",
    "unknown": "whether it is in force is not known:",
    "not asked": "whether it is in force was not asked:",
}
_ALL = "It would be allowed with this:"
_NOT_ALL = "Policy lacks this; as said above, it is not all that is missing:"


def explain(
    source: Annotated[str, typer.Option("--from", metavar="NS/SERVICEACCOUNT", help="Who calls.")],
    to: Annotated[str, typer.Option(metavar="NS/SERVICE:PORT|IP:PORT", help="What is called.")],
    method: Annotated[str, typer.Argument(help="HTTP method.")] = "GET",
    path: Annotated[str, typer.Argument(help="Path, or URL, as it is sent.")] = "/",
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="A header; may be given often.")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Directory of manifests: no server is asked.")] = None,
    state: Annotated[
        Path | None, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the running server.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a call is allowed or not, and what would have to be added for a yes.

    A server also says whether that is in force: what the sidecars that the call goes by really have. Offline
    it is policy alone.

    Status: 0 if it is allowed, 1 if it is not, 2 if the question cannot be answered.
    """
    query = {"from": source, "to": to, "method": method, "path": path}
    if mesh is not None:
        found = _offline(mesh, query, header or [])
    elif state is not None:
        found = _from_server(state, query, header or [])
    else:
        raise CommandFailed(
            "give --mesh DIR to explain a directory, or --state DIR to ask the running server"
        )
    if as_json:
        print_json(found)
    else:
        sys.stdout.write(text(found))
    if found.get("answer") != "allowed":
        raise typer.Exit(Status.NO)


def text(found: Found) -> str:
    """Return an explanation as lines for people, with what is missing as YAML."""
    asked = " ".join(str(found[name]) for name in ("to", "method", "path") if found[name])
    lines = [f"{found['from']} to {asked}: {found['headline']}", ""]
    for step in records(found, "steps"):
        indent = _INDENT * (1 + int(str(step["depth"])))
        lines.append(f"{indent}{step['text']}")
        lines.extend(
            f"{indent}{_INDENT}{each['object']}, {each['origin']}" for each in records(step, "objects")
        )
    lines += [f"{_INDENT}{each}" for each in _standing(found)]
    if missing := records(found, "missing"):
        import yaml

        heading = _NOT_ALL if found.get("besides") else _ALL
        lines += ["", f"# {heading}"]
        lines.append(yaml.safe_dump_all(missing, sort_keys=False, explicit_start=True).rstrip())
    return "\n".join(lines) + "\n"


def _standing(found: Found) -> list[str]:
    """Return whether what policy says is in force, and what is in the way."""
    because = texts(found, "in_force_because")
    return [_IN_FORCE[str(found["in_force"])], *(f"{_INDENT}{each}" for each in because)]


def _offline(directory: Path, query: Mapping[str, str], headers: list[str]) -> Found:
    from admin.pages.explain import QueryError, answer
    from cli.offline.mesh import read

    try:
        return answer(read(directory).view, query, headers)
    except QueryError as error:
        raise CommandFailed(error) from error


def _from_server(state: Path, query: Mapping[str, str], headers: list[str]) -> Found:
    from urllib.parse import urlencode

    pairs = [*query.items(), *(("header", each) for each in headers)]
    found = ask(state, "GET", f"/debug/explain?{urlencode(pairs)}")
    return found if isinstance(found, dict) else {}
