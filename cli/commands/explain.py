"""`meshwright explain`: why one call may pass or not, from a directory or from the running server."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NoReturn

import typer

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
    to: Annotated[str, typer.Option(metavar="NS/SERVICE:PORT", help="What is called.")],
    method: Annotated[str, typer.Argument(help="HTTP method.")] = "GET",
    path: Annotated[str, typer.Argument(help="Path, or URL, as it is sent.")] = "/",
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="A header; may be given often.")
    ] = None,
    mesh: Annotated[Path | None, typer.Option(help="Directory of manifests: no server is asked.")] = None,
    state: Annotated[
        Path | None, typer.Option(envvar="MESHWRIGHT_STATE", help="State directory of the running server.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Say why a call is allowed or not, and what would have to be added for a yes.

    A server also says whether that is in force: what the sidecars that the call goes by really have. Offline
    it is policy alone.

    Exit status: 0 if it is allowed, 3 if it is not, 1 if the question cannot be answered.
    """
    query = {"from": source, "to": to, "method": method, "path": path}
    if mesh is not None:
        found = _offline(mesh, query, header or [])
    elif state is not None:
        found = _from_server(state, query, header or [])
    else:
        _fail("give --mesh DIR to explain a directory, or --state DIR to ask the running server")
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    else:
        sys.stdout.write(text(found))
    if found.get("answer") != "allowed":
        raise typer.Exit(3)


def text(found: Mapping[str, object]) -> str:
    """Return an explanation as lines for people, with what is missing as YAML."""
    lines = [f"{found['from']} to {found['to']} {found['method']} {found['path']}: {found['headline']}", ""]
    for step in _list(found, "steps"):
        indent = _INDENT * (1 + int(str(step["depth"])))
        lines.append(f"{indent}{step['text']}")
        lines.extend(
            f"{indent}{_INDENT}{each['object']}, {each['origin']}" for each in _list(step, "objects")
        )
    lines += [f"{_INDENT}{each}" for each in _standing(found)]
    if missing := _list(found, "missing"):
        import yaml

        heading = _NOT_ALL if found.get("besides") else _ALL
        lines += ["", f"# {heading}"]
        lines.append(yaml.safe_dump_all(missing, sort_keys=False, explicit_start=True).rstrip())
    return "\n".join(lines) + "\n"


def _standing(found: Mapping[str, object]) -> list[str]:
    """Return whether what policy says is in force, and what is in the way."""
    because = found.get("in_force_because")
    return [_IN_FORCE[str(found["in_force"])], *(f"{_INDENT}{each}" for each in _words(because))]


def _words(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _offline(directory: Path, query: Mapping[str, str], headers: list[str]) -> Mapping[str, object]:
    from admin.pages.explain import QueryError, answer, read_request
    from cli.offline.mesh import OfflineError, read

    try:
        return answer(read(directory).view, read_request(query, headers))
    except (OfflineError, QueryError) as error:
        _fail(error)


def _from_server(state: Path, query: Mapping[str, str], headers: list[str]) -> Mapping[str, object]:
    from urllib.parse import urlencode

    from cli.client import NotRunning, Refused, ask

    pairs = [*query.items(), *(("header", each) for each in headers)]
    try:
        found = ask(state, "GET", f"/debug/explain?{urlencode(pairs)}")
    except (NotRunning, Refused) as error:
        _fail(error)
    return found if isinstance(found, dict) else {}


def _list(found: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    value = found.get(name)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _fail(message: object) -> NoReturn:
    sys.stderr.write(f"meshwright: {message}\n")
    raise typer.Exit(1)
