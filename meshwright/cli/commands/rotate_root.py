"""`meshwright certs rotate-root`: the root gives way to a new one in stages, without a lost request."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from meshwright.cli.durations import duration
from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import Found, print_json, records, texts
from meshwright.cli.socket import completion as completing

_STAGES: Final = {
    "trusting": "{other} is to be trusted by all; {signer} signs",
    "replacing": "{signer} signs; what {other} has signed is replaced",
    "retiring": "{other} is trusted no longer; {signer} signs",
}
_WHY: Final = {
    "never-connected": "never connected",
    "mesh-trust": "its Envoy has not acknowledged the roots",
    "channel-trust": "its agent has not confirmed the roots",
    "proxy-certificate": "its proxy certificate is of the other root",
    "service-certificate": "its service certificate is of the other root",
    "server-certificate": "its own certificates are not of these roots yet",
    "webhook-trust": "its cluster does not trust the roots",
    "joining-trust": "the ConfigMaps by which pods join do not have the roots yet",
    "not-declared": "MeshRootCertificates do not want the next stage yet",
}


def rotate_root(
    state: State,
    status: Annotated[bool, typer.Option("--status", help="Change nothing: say how it stands.")] = False,
    abort: Annotated[
        bool, typer.Option("--abort", help="Go back to the root that was there before.")
    ] = False,
    give_up: Annotated[
        list[str] | None,
        typer.Option(metavar="PROXY", help="Wait no longer for this one.", autocompletion=completing.proxies),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--give-up-older-than", metavar="AGE", help="Nor for those last seen so long ago: 7d."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change the mesh's root for a new one, in three stages that the server takes by itself.

    A stage ends when every proxy that it concerns has shown that it has followed. Status: 0 where no root is
    being changed, or this command has changed something; with --status, 1 while one is being changed.
    """
    from meshwright.cli.socket.client import ask

    if sum((status, abort, bool(give_up) or older_than is not None)) > 1:
        raise CommandFailed("--status, --abort and --give-up are asked one at a time")
    if status:
        found = ask(state, "GET", "/certs/rotate-root")
    else:
        age = None if older_than is None else duration("--give-up-older-than", older_than).total_seconds()
        body = {"abort": abort, "give_up": give_up or [], "older_than_seconds": age}
        found = ask(state, "POST", "/certs/rotate-root", body=body)
    if as_json or not isinstance(found, dict):
        print_json(found)
    else:
        print_lines(*text(found))
    if status and isinstance(found, dict) and found.get("stage") is not None:
        raise typer.Exit(1)


def text(found: Found) -> Iterator[str]:
    """Yield what is said of a change, line by line."""
    stage = found.get("stage")
    if stage is None:
        yield "no root is being changed"
        return
    roots = {name: f"root {str(found.get(name))[:16]}" for name in ("signer", "other")}
    back = "going back, " if found.get("aborted") else ""
    words = _STAGES.get(str(stage), "{signer} signs").format(**roots)
    yield f"{back}stage {found.get('number')} of {found.get('stages')}, {stage}: {words}"
    yield f"since {found.get('since')}, begun {found.get('began')}"
    waiting, ours = records(found, "waiting_for"), records(found, "also_waiting_for")
    for each in ours:
        reason = f" ({each['reason']})" if each.get("reason") else ""
        yield f"waiting for the {each.get('part')}: {_WHY.get(str(each.get('why')), each.get('why'))}{reason}"
    if waiting:
        yield f"waiting for {len(waiting)} {'proxy' if len(waiting) == 1 else 'proxies'}:"
    elif not ours:
        yield "waiting for nobody: the next stage begins in a moment"
    for each in waiting:
        why = "; ".join(_WHY.get(word, word) for word in texts(each, "why"))
        yield f"  {each.get('proxy')}: {why} (last seen {each.get('last_seen') or 'never'})"
    given_up = found.get("given_up")
    if isinstance(given_up, dict) and given_up:
        yield f"given up: {', '.join(given_up)}"
