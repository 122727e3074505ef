"""`meshwright certs rotate-root`: replace the root certificate in stages, without failed requests."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from meshwright.cli.durations import duration
from meshwright.cli.errors import CommandFailed, understood
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import Found, print_json, records, texts
from meshwright.cli.socket import completion as completing

_STAGES: Final = {
    "trusting": "all proxies learn to trust {other}; {signer} signs",
    "replacing": "{signer} signs; certificates signed by {other} are replaced",
    "retiring": "proxies stop trusting {other}; {signer} signs",
}
_WHY: Final = {
    "never-connected": "never connected",
    "mesh-trust": "its Envoy has not acknowledged the roots",
    "channel-trust": "its agent has not confirmed the roots",
    "proxy-certificate": "its proxy certificate is signed by the other root",
    "service-certificate": "its service certificate is signed by the other root",
    "server-certificate": "the server's own certificates are not signed by these roots yet",
    "webhook-trust": "the webhook configuration in the cluster does not have the roots yet",
    "joining-trust": "the ConfigMaps with which Pods join do not have the roots yet",
    "not-declared": "MeshRootCertificates do not ask for the next stage yet",
    "no-report": "it has not reported what its proxies have",
    "step-not-taken": "it has not taken over the last step",
    "unknown-certificates": "certificates that it has issued are not known here yet",
}


def rotate_root(
    state: State,
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of the rotation, and change nothing.")
    ] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Return to the previous root.")] = False,
    give_up: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROXY",
            help="Continue without this proxy. Repeat for more.",
            autocompletion=completing.proxies,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--give-up-older-than",
            metavar="AGE",
            help="Continue without proxies that were last seen longer ago than this, for example 7d.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replace the mesh's root certificate, in three stages and without downtime.

    Start the rotation and follow it:

      meshwright certs rotate-root --state /var/lib/meshwright
      meshwright certs rotate-root --state /var/lib/meshwright --status

    The server starts the next stage by itself when all proxies have completed the
    current one. --give-up excludes proxies that no longer exist; they must join
    again if they return.

    Exit status: 0 if no rotation is running or this command started a change;
    with --status, 1 while a rotation is running.
    """
    from meshwright.cli.socket.client import ask

    if sum((status, abort, bool(give_up) or older_than is not None)) > 1:
        raise CommandFailed("--status, --abort and --give-up exclude each other: give one of them")
    if status:
        result = ask(state, "GET", "/certs/rotate-root")
    else:
        age = None if older_than is None else duration("--give-up-older-than", older_than).total_seconds()
        body = {"abort": abort, "give_up": give_up or [], "older_than_seconds": age}
        result = ask(state, "POST", "/certs/rotate-root", body=body)
    if not isinstance(result, dict):
        print_json(result)
        return
    # Without the field the command would report that no rotation is running, which may be wrong.
    with understood():
        stage = result["stage"]
    if as_json:
        print_json(result)
    else:
        print_lines(*text(result))
    if status and stage is not None:
        raise typer.Exit(1)


def _party(part: Found) -> str:
    """Return a part of the server, or another server, with the reason for waiting."""
    why, reason = _WHY.get(str(part.get("why")), part.get("why")), part.get("reason")
    if part.get("part") == "other-server":
        return f"the server {reason}: {why}"
    return f"the {part.get('part')}: {why}{f' ({reason})' if reason else ''}"


def text(result: Found) -> Iterator[str]:
    """Yield the lines that describe a rotation."""
    stage = result.get("stage")
    if stage is None:
        yield "no root rotation is running"
        return
    roots = {name: f"root {str(result.get(name))[:16]}" for name in ("signer", "other")}
    back = "going back, " if result.get("aborted") else ""
    words = _STAGES.get(str(stage), "{signer} signs").format(**roots)
    yield f"{back}stage {result.get('number')} of {result.get('stages')}, {stage}: {words}"
    yield f"since {result.get('since')}, begun {result.get('began')}"
    waiting, ours = records(result, "waiting_for"), records(result, "also_waiting_for")
    if others := texts(result, "other_servers"):
        yield f"other servers of the mesh: {', '.join(others)}"
    for each in ours:
        yield f"waiting for {_party(each)}"
    if waiting:
        yield f"waiting for {len(waiting)} {'proxy' if len(waiting) == 1 else 'proxies'}:"
    elif not ours:
        yield "all proxies are done: the next stage begins in a moment"
    for item in waiting:
        why = "; ".join(_WHY.get(word, word) for word in texts(item, "why"))
        yield f"  {item.get('proxy')}: {why} (last seen {item.get('last_seen') or 'never'})"
    given_up = result.get("given_up")
    if isinstance(given_up, dict) and given_up:
        yield f"given up: {', '.join(given_up)}"
