"""`meshwright proxy`: show one proxy with its configuration, and send rejected resources again."""

import enum
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from meshwright.cli.errors import understood
from meshwright.cli.options import AsJson, Replica, State
from meshwright.cli.printing.lines import joined, print_lines, print_remarks
from meshwright.cli.printing.responses import (
    Found,
    missing_replicas,
    of_replica,
    print_json,
    records,
    required_texts,
    texts,
)
from meshwright.cli.socket import completion as completing
from meshwright.cli.socket.client import api, ask, proxy_path

proxy = typer.Typer(help="Show one proxy and its configuration.", no_args_is_help=True)
Name = Annotated[
    str,
    typer.Argument(
        help="Proxy: its UUID or the first characters of it, its common name, or the name of "
        "its workload, as NAME or NAMESPACE/NAME.",
        autocompletion=completing.proxies,
    ),
]


class Section(enum.StrEnum):
    """Part of a proxy's configuration or history."""

    LISTENERS = "listeners"
    ROUTES = "routes"
    CLUSTERS = "clusters"
    ENDPOINTS = "endpoints"
    SECRETS = "secrets"
    HISTORY = "history"


@proxy.callback()
def about() -> None:
    """Show one proxy and its configuration."""


@proxy.command()
def show(
    name: Name,
    state: State,
    section: Annotated[Section | None, typer.Argument(help="Part to show.", show_default="all parts")] = None,
    replica: Replica = "",
    as_json: AsJson = False,
) -> None:
    """Show a proxy's state and its configuration, as services and policies.

    The output has no Envoy terms. For example, show the routes of a workload's
    proxy, or the history of its configuration:

      meshwright proxy show shop/buyer routes
      meshwright proxy show shop/buyer history
    """
    result = _of(api(state, proxy_path(name), of_replica(replica)), section)
    if section in (None, Section.HISTORY):
        result["history"] = api(state, f"{proxy_path(name)}/pushes", of_replica(replica)).get("pushes")
    if as_json:
        print_json(result)
        return
    with understood():
        sys.stdout.write(text(result))
        print_remarks(*missing_replicas(result))


def _of(result: Found, section: Section | None) -> dict[str, object]:
    """Return a proxy's fields; with a section, omit all other sections."""
    return {
        name: item for name, item in result.items() if section in (None, name) or name not in tuple(Section)
    }


@proxy.command()
def retry(
    name: Name,
    state: State,
    as_json: AsJson = False,
) -> None:
    """Send rejected resources to a proxy again now.

    The server retries by itself from time to time. Use the command after you
    fixed the cause, for example a port that another program used.
    """
    result = ask(state, "POST", "/proxies/retry", body={"proxy": name})
    if as_json:
        print_json(result)
        return
    offered = required_texts(result, "offered")
    if not offered:
        print_lines("cannot retry: the proxy has accepted all resources")
    for line in offered:
        print_lines(f"sent again: {line}")


def text(result: Found) -> str:
    """Return one proxy as lines for people."""
    lines = [*_head(result)]
    for section in Section:
        if section.value in result:
            listed = records(result, section.value)
            shown = map(_push, listed) if section is Section.HISTORY else (str(r["text"]) for r in listed)
            lines += ["", section.value, *(f"  {line}" for line in shown)]
            if not listed:
                lines.append("  none")
    return joined(lines)


def _head(result: Found) -> Iterator[str]:
    workload = result.get("workload")
    place = f" on node {result['node']}" if result.get("node") else ""
    what = (
        f"workload {workload}{place}, identity {result.get('identity')}"
        if workload
        else "no workload is known"
    )
    yield f"{result.get('cn')}: {what}"
    address = f" from {result['address']}" if result.get("address") else ""
    protocol = f" by {result['protocol']}" if result.get("protocol") else ""
    replica = f", at server {result['replica']}" if result.get("replica") else ""
    yield f"{result.get('state')} for {result.get('age')}{address}{protocol}{replica}"
    sync = result.get("sync")
    types = [f"{name} {state}" for name, state in sync.items()] if isinstance(sync, Mapping) else []
    if types:
        yield ", ".join(types)
    if result.get("why"):
        yield f"behind: {result['why']}"
    for line in texts(result, "rejected"):
        yield f"rejected, and left out or served in the version before: {line}"
    for line in texts(result, "left_out"):
        yield f"not served: {line}"


def _push(push: Found) -> str:
    changes = [
        f"{word} {', '.join(_names(push.get(word)))}"
        for word in ("added", "changed", "removed")
        if push.get(word)
    ]
    if push.get("again"):
        changes.append(f"{push['again']} sent again")
    what = "; ".join(changes) or "nothing"
    return f"{push['at']} {push['type']}: {what} ({push['bytes']} bytes), {_answer(push)}, {_why(push)}"


def _names(result: object) -> list[str]:
    names = result if isinstance(result, list) else []
    return [str(name["name"]) if isinstance(name, Mapping) else str(name) for name in names]


def _answer(push: Found) -> str:
    seconds, error = push.get("seconds"), push.get("error")
    took = f" {_length(float(str(seconds)))}" if seconds is not None else ""
    message = f": {' '.join(str(error['message']).split())}" if isinstance(error, Mapping) else ""
    return f"{push['answer']}{' for' if push['answer'] == 'pending' else ''}{took}{message}"


def _length(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _why(push: Found) -> str:
    trigger = push.get("trigger")
    if not isinstance(trigger, Mapping):
        return ""
    waves = [f"wave {wave['wave']}: {_causes(wave)}" for wave in records(trigger, "waves")]
    return "; ".join(waves) or str(trigger.get("why"))


def _causes(wave: Found) -> str:
    causes = [f"{item['object']} {item['change']} ({item['origin']})" for item in records(wave, "causes")]
    more = [f"{wave['more']} more"] if wave.get("more") else []
    return ", ".join([*causes, *more]) or "no object"
