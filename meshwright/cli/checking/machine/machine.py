"""Checks of `meshwright agent check`."""

import asyncio
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from meshwright.agent.credentials import Credentials
from meshwright.agent.envoy.runtime import RuntimeDirectory
from meshwright.agent.hosts.file import BEGIN, END, called, lines
from meshwright.agent.interception.iptables import ProgramFailed, Redirection, led
from meshwright.agent.reach.place import Place, place
from meshwright.agent.status.client import AgentSilent, status_of
from meshwright.cli.checking import kernel
from meshwright.cli.checking.judgements import fitness
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.judgements.environment import machine, ports
from meshwright.cli.checking.judgements.environment.machine import Agent, Hosts
from meshwright.cli.checking.machine import envoy
from meshwright.cli.checking.machine.control_plane import DialSettings, dials_in, files_of, ways_to
from meshwright.cli.checking.timed_looks import TimedLook
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.names import Namespace
from meshwright.mesh.server_addresses import server_addresses
from meshwright.sidecars.layout import ADS_PORT, INBOUND_PORT, OUTBOUND_PORT, TPROXY_PORT

_ENVOY: Final = "envoy"
_WAY_SECONDS: Final = 30.0
"""Limit for connecting to a control plane, where each step has a limit of five seconds."""


def checks(where: DialSettings) -> Iterator[Check]:
    """Check a machine after its set-up, or a Pod from inside the sidecar's container."""
    in_a_pod = place() is Place.POD
    return (machine.in_a_pod(check) if in_a_pod else check for check in _checks(where))


def _checks(where: DialSettings) -> Iterator[Check]:
    # All looks begin here, at once; the lines below wait for their results in the order of printing.
    files = TimedLook("credentials", partial(files_of, where))
    status, listening = (
        TimedLook("agent", partial(_status, where.status)),
        TimedLook("sockets", kernel.listeners),
    )
    bootstrap = RuntimeDirectory(where.run.absolute()).bootstrap
    proxy = TimedLook("Envoy", lambda: asyncio.run(envoy.running(where.admin, bootstrap)))
    # The rules name the exempt user, as whom the control plane is then called.
    rules = TimedLook("rules", _rules).seen()
    answer = status.seen()
    path, user_of_it = (where.envoy, None) if where.envoy else _run_by(answer)
    program = TimedLook("Envoy's program", partial(envoy.program, path, user_of_it))
    ads = where.ads or (() if isinstance(answer, UnavailableCheck | str) else answer[1])
    user = _left_alone(rules)
    way = TimedLook("control plane", lambda: ways_to(where, ads, user), _WAY_SECONDS)

    yield from dials_in(where, files.seen(), way.seen(), ads)
    yield program.judged("Envoy's program", lambda outcome: machine.envoy_program(path, *outcome))
    yield status.judged(
        "agent",
        lambda outcome: machine.agent(where.status, outcome if isinstance(outcome, str) else outcome[0]),
    )
    result, binary = proxy.seen(), program.seen()
    known = result if isinstance(result, envoy.EnvoyState) else None
    version = None if isinstance(binary, UnavailableCheck) else binary[1]
    yield proxy.judged(
        "Envoy",
        lambda item: machine.envoy(item.envoy if isinstance(item, envoy.EnvoyState) else item, version),
    )
    yield _interception(rules, listening, known)
    yield TimedLook("hosts file", lambda: _hosts(where, known, files.seen())).judged(
        "hosts file", machine.hosts_file
    )
    own = known.sockets if known else frozenset()
    for at in sorted({*where.applications, *(known.applications if known else ())}):
        yield listening.judged(f"application port {at.port}", partial(machine.application, at, own=own))


def before(where: DialSettings) -> Iterator[Check]:
    """Check a machine before its set-up: whether an agent and interception rules would work."""
    files, path = TimedLook("credentials", partial(files_of, where)), where.envoy or _ENVOY
    program = TimedLook("Envoy's program", partial(envoy.program, path))
    way = TimedLook("control plane", lambda: ways_to(where, where.ads, None), _WAY_SECONDS)
    yield kernel.python()
    yield fitness.user(where.uid, known=_is_user(where.uid))
    yield program.judged("Envoy's program", lambda result: machine.envoy_program(path, *result))
    yield fitness.directory("run directory", kernel.directory(where.run), "--run")
    yield from dials_in(where, files.seen(), way.seen(), where.ads, before=True)
    for purpose, option, at in (
        *((("admin", "--admin", where.admin),) if isinstance(where.admin, HostPort) else ()),
        ("status", "--status", where.status),
        *(
            (purpose, "`meshwright intercept` and the Workload", HostPort("0.0.0.0", port))  # noqa: S104 - compared
            for purpose, port in (
                ("outbound", OUTBOUND_PORT),
                ("inbound", INBOUND_PORT),
                ("tproxy", TPROXY_PORT),
            )
        ),
    ):
        yield ports.free(kernel.port(purpose, option, at))
    need, do = (
        "traffic cannot be redirected to the proxy without it",
        "install iptables, or have the proxy called by address",
    )
    yield fitness.program("iptables", shutil.which("iptables-restore"), need, do)
    for at in where.applications:
        yield TimedLook("sockets", kernel.listeners).judged(
            f"application port {at.port}", partial(machine.application, at)
        )


def _run_by(status: tuple[Agent, tuple[HostPort, ...]] | str | UnavailableCheck) -> tuple[str, int | None]:
    """Return the agent's Envoy program, and its user; else the default program without user.

    Any program can answer at the agent's address. As root, we must therefore run the named program only as
    the user who already runs it.
    """
    pids = () if isinstance(status, str | UnavailableCheck) else status[0].pids
    for pid in pids:
        # the process has ended, or belongs to another user
        with suppress(OSError, ValueError, StopIteration):
            process = Path(f"/proc/{int(pid)}")
            # The Uid, because the owner of /proc/PID is root for a process that is not dumpable.
            rows = (process / "status").read_text(errors="replace").splitlines()
            user = int(next(row.split()[1] for row in rows if row.startswith("Uid:")))
            return str((process / "exe").readlink()).removesuffix(" (deleted)"), user
    return _ENVOY, None


def _status(at: HostPort) -> tuple[Agent, tuple[HostPort, ...]] | str:
    """Ask the agent; return the report and the control plane's addresses, or why there is no answer."""
    try:
        result = status_of(at)
    except AgentSilent as error:
        return str(error)
    plane = result["control_plane"]
    agent = Agent(
        result["proxy"],
        tuple(result["not_ready"]),
        tuple(result["envoy"]["pids"]),
        plane["reached"],
        plane["reason"] or "",
    )
    return agent, server_addresses(plane["address"], ADS_PORT)


def _rules() -> Redirection | UnavailableCheck:
    if shutil.which("iptables-save") is None and shutil.which("ip6tables-save") is None:
        return Redirection()
    if os.geteuid() != 0:
        return UnavailableCheck("only root can read the iptables rules", "repeat the command as root")
    try:
        return led()
    except ProgramFailed as error:
        return UnavailableCheck(str(error), "see the output of `iptables-save`, as root")


def _left_alone(rules: Redirection | UnavailableCheck) -> int | None:
    return (
        None if isinstance(rules, UnavailableCheck) or os.geteuid() != 0 else min(rules.users, default=None)
    )


def _interception(
    rules: Redirection | UnavailableCheck,
    listening: "TimedLook[tuple[machine.Listener, ...]]",
    proxy: envoy.EnvoyState | None,
) -> Check:
    if isinstance(rules, UnavailableCheck):
        return Check.unseen("interception", rules)
    waits_at = None if proxy is None else proxy.waits_at
    return listening.judged(
        "interception", lambda listeners: machine.interception(rules, listeners, waits_at)
    )


def _hosts(
    where: DialSettings, proxy: envoy.EnvoyState | None, files: Credentials | str | UnavailableCheck
) -> Hosts:
    try:
        result = where.hosts.read_text("utf-8").splitlines() if where.hosts.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        return Hosts(where.hosts, kept=False, error=f"{where.hosts} cannot be read: {error}")
    if BEGIN not in result:
        return Hosts(where.hosts, kept=False)
    if END not in result[result.index(BEGIN) :]:
        return Hosts(where.hosts, kept=True, whole=False)
    if proxy is None or not isinstance(files, Credentials):
        return Hosts(where.hosts, kept=True)
    wanted = lines(called(proxy.listeners), Namespace(files.name.namespace), where.cluster_domain)
    lacking = tuple(line.split()[1] for line in wanted if line not in result)
    return Hosts(where.hosts, kept=True, lacking=lacking)


def _is_user(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
