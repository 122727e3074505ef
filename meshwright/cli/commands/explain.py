"""`meshwright explain`: why a call is allowed or denied, from manifests or from the running server."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, Status, understood
from meshwright.cli.options import (
    AsJson,
    Context,
    ControlPlane,
    Kubeconfig,
    Kubernetes,
    Namespaces,
    Selector,
    require_cluster,
)
from meshwright.cli.printing.lines import joined
from meshwright.cli.printing.responses import (
    Found,
    print_json,
    records,
    required_records,
    texts,
    with_remarks,
)
from meshwright.cli.process.standard_streams import read_text
from meshwright.cli.socket.client import api
from meshwright.providers.text.yaml_documents import printed

if TYPE_CHECKING:
    from meshwright.cli.offline.mesh import OfflineMesh

_INDENT = "  "
_IN_FORCE = {
    "yes": "The sidecars enforce this decision: they have acknowledged their configuration.",
    "no": "The sidecars do not enforce this decision:",
    "unknown": "It is not known whether the sidecars enforce this decision:",
    "not asked": "Whether sidecars enforce this decision was not evaluated:",
}
_ALL = "This policy would allow the request:"
_NOT_ALL = "This policy is missing, but more is in the way, as the last step explains:"


def explain(
    typed: typer.Context,
    method: Annotated[
        str,
        typer.Argument(
            metavar="[METHOD]|LINE|-",
            help="HTTP method; or a line of a sidecar's access log; or - to read such a line "
            "from standard input.",
        ),
    ] = "GET",
    path: Annotated[str, typer.Argument(help="Path or URL of the request.")] = "/",
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="NS/SERVICEACCOUNT|IP",
            help="Caller: namespace and ServiceAccount, for example shop/buyer. A caller outside "
            "the mesh: IP[,tls][,name=NAME][,server=NAME].",
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option(
            metavar="NS/SERVICE:PORT|IP:PORT|HOST:PORT",
            help="Called service, address or host, with the port: for example shop/store:80.",
        ),
    ] = "",
    gateway: Annotated[
        str,
        typer.Option(
            metavar="NS/GATEWAY[:PORT]",
            help="Gateway that gets a request from outside the mesh, in place of --from and --to.",
        ),
    ] = "",
    host: Annotated[str, typer.Option(help="Host of a request to a gateway, for example shop.example.")] = "",
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="Request header. Repeat for more.")
    ] = None,
    mesh: Annotated[
        Path | None, typer.Option(help="Directory of manifests to explain, without a server.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_STATE",
            help="State directory of the running server, for example /var/lib/meshwright.",
        ),
    ] = None,
    kubernetes: Kubernetes = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    namespaces: Namespaces = "",
    selector: Selector = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    r"""Explain why a call is allowed or denied, and which policy would allow it.

    Use the command to write a policy, or to find out why a request got status
    403. For example, ask the running server about a call:

      meshwright explain GET /books --from shop/buyer --to shop/store:80 \
          --state /var/lib/meshwright

    or about a denied request, with a line of the sidecar's access log:

      kubectl logs POD -c meshwright-sidecar | grep 403 | tail -1 \
          | meshwright explain - --kubernetes

    or about a request from outside to a gateway:

      meshwright explain GET /books --gateway shop/edge --host shop.example \
          --mesh mesh/

    A running server also compares policy with the configuration that the sidecars
    have acknowledged. With --mesh or --kubernetes, only policy is explained. An
    access log has two request headers only: host and user agent.

    Exit status: 0 if the call is allowed, 1 if it is denied, unreachable or
    depends on something unknown, 2 if the command cannot answer.
    """
    require_cluster(typed)
    query = _query(source, to, gateway, host) | _request_query(method, path)
    if not query.get("line") and not gateway and not (source and to):
        raise CommandFailed(
            "the call is not complete: give --from NAMESPACE/SERVICEACCOUNT and --to "
            "NAMESPACE/SERVICE:PORT, or --gateway NAMESPACE/GATEWAY, or a line of a sidecar's access log"
        )
    if kubernetes:
        from meshwright.cli.offline.cluster import reached, together

        asked = reached(kubeconfig, context, namespaces, selector, control_plane)
        result = _offline(partial(together, asked, mesh), query, header or [])
    elif mesh is not None:
        result = _offline(partial(_read, mesh), query, header or [])
    elif state is not None:
        result = _from_server(state, query, header or [])
    else:
        raise CommandFailed(
            "a mesh is required: give --state DIR of the running server, --mesh DIR for a directory of "
            "manifests, or --kubernetes for a cluster"
        )
    with understood():
        answer, message = result["answer"], "" if as_json else text(result)
    if as_json:
        print_json(result)
    else:
        sys.stdout.write(message)
    if answer != "allowed":
        raise typer.Exit(Status.NO)


def _query(source: str, to: str, gateway: str, host: str) -> dict[str, str]:
    """Return the query about the two ends of a call, or about a gateway."""
    if not gateway:
        if host:
            raise CommandFailed(
                "--host is for requests to a gateway: give --header 'Host: NAME', or --gateway"
            )
        return {"from": source, "to": to}
    if source or to:
        raise CommandFailed(
            "--gateway takes the place of --from and --to: give the one or the others, because a client "
            "outside the mesh calls the gateway"
        )
    return {"gateway": gateway, **({"host": host} if host else {})}


def _request_query(method: str, path: str) -> dict[str, str]:
    """Return the query in an explanation: a method and a path, or a line of an access log."""
    # A line of the access log is a JSON object.
    if method != "-" and not method.startswith("{"):
        return {"method": method, "path": path}
    lines = (read_text() if method == "-" else method).strip().splitlines()
    if len(lines) != 1:
        raise CommandFailed(
            f"the input has {len(lines)} lines: give one line of an access log, for example with `tail -1`"
        )
    return {"line": lines[0]}


def text(result: Found) -> str:
    """Return an explanation as lines for people, with missing policy as YAML."""
    asked = " ".join(str(result[name]) for name in ("to", "method", "path") if result[name])
    lines = [f"{result['from']} to {asked}: {result['headline']}"]
    if logged := result.get("logged"):
        lines.append(_logged(dict(logged) if isinstance(logged, Mapping) else {}))
    lines.append("")
    number = count(1)
    for step in required_records(result, "steps"):
        # Only top-level steps have numbers, because deeper ones are details of the step before.
        depth = int(str(step["depth"]))
        indent = _INDENT * (1 + depth)
        lines.append(f"{indent}{'' if depth else f'{next(number)}. '}{step['text']}")
        lines.extend(
            f"{indent}{_INDENT}{record['object']}, {record['origin']}" for record in records(step, "objects")
        )
    lines += [f"{_INDENT}{item}" for item in _standing(result)]
    if missing := records(result, "missing"):
        heading = _NOT_ALL if result.get("besides") else _ALL
        lines += ["", f"# {heading}"]
        lines += printed(missing).splitlines()
    return joined(lines)


def _logged(record: Mapping[str, object]) -> str:
    """Return time, response code and policy of a request in a line of an access log, as text."""
    code, details = record.get("response_code", "a connection"), record.get("response_code_details", "")
    by = str(record.get("policy") or "")
    # For other kinds than TrafficTarget, the log has the kind and the name.
    policy = f", admitted by {by if ' ' in by else f'TrafficTarget {by}'}" if by else ""
    if code == "403" and (wanted := record.get("policy_looked_for")):
        policy = (
            ", the caller is not a source of any TrafficTarget"
            if wanted == "~"
            else f", no rule of TrafficTarget {wanted} fitted"
        )
    return f"logged at {record.get('start_time', '?')}: {code}{f' ({details})' if details else ''}{policy}"


def _standing(result: Found) -> list[str]:
    """Return whether the sidecars enforce the decision, and the reasons against it."""
    because = texts(result, "in_force_because")
    return [_IN_FORCE[str(result["in_force"])], *(f"{_INDENT}{item}" for item in because)]


def _read(directory: Path) -> "OfflineMesh":
    from meshwright.cli.offline.mesh import read

    return read(directory)


def _offline(read: "Callable[[], OfflineMesh]", query: Mapping[str, str], headers: list[str]) -> Found:
    from meshwright.admin.pages.calls.access_line import question
    from meshwright.admin.pages.calls.explain import answer
    from meshwright.admin.pages.calls.fields import QueryError

    try:
        mesh = read()
        asked = question(mesh.view, query, headers)
        found = answer(mesh.view, asked.query, asked.headers, mesh.problems)
        return found | {"logged": dict(asked.logged)}
    except QueryError as error:
        raise CommandFailed(error) from error


def _short(query: Mapping[str, str]) -> Mapping[str, str]:
    """Return a query with only the used fields of its log line, because a URL must be short."""
    if "line" not in query:
        return query
    import json

    from meshwright.admin.pages.calls.access_line import LineError, read_line

    try:
        return {**query, "line": json.dumps(read_line(query["line"]))}
    except LineError as error:
        raise CommandFailed(error) from error


def _from_server(state: Path, query: Mapping[str, str], headers: list[str]) -> Found:
    pairs = [*_short(query).items(), *(("header", header) for header in headers)]
    return with_remarks(api(state, "/explain", pairs))
