"""What `meshwright agent check` looks at."""

import asyncio
import json
import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from agent import credentials
from agent.credentials import Credentials, CredentialsError
from agent.envoy.runtime import RuntimeDirectory
from agent.hosts.file import BEGIN, END, called, lines
from agent.interception.iptables import Led, ProgramFailed, led
from agent.reach.observations import Observed, Shown
from agent.reach.probing import Dialling, listener, observe
from agent.reach.reasons import unreached
from agent.status.waiting import AgentSilent, asked
from certs.privacy import user_of
from checks import certificates, clock, fitness, machine, ports
from checks.certificates import Certificate
from checks.check import Check, Unseen
from checks.machine import Agent, Hosts
from cli.checking import envoy, kernel
from cli.checking.looking import Look
from cli.checking.sending import send_as
from mesh.host_port import HostPort
from mesh.names import Namespace
from sidecars.layout import CHAIN_FILE, INBOUND_PORT, OUTBOUND_PORT, STATUS_PATH, TPROXY_PORT

_ENVOY: Final = "envoy"
_WAY_SECONDS: Final = 30.0
"""For the way to a control plane: its steps have five seconds each."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Where things are on the machine; None is where the agent, or its Envoy, says that it is."""

    credentials: Path
    ads: HostPort | None
    run: Path
    envoy: str | None
    admin: HostPort
    status: HostPort
    applications: tuple[HostPort, ...]
    hosts: Path
    cluster_domain: str
    shared: bool
    uid: int


def checks(where: Asked) -> Iterator[Check]:
    """Look at a machine that is set up."""
    files = Look("credentials", partial(_files, where))
    status, listening = Look("agent", partial(_status, where.status)), Look("sockets", kernel.listeners)
    bootstrap = RuntimeDirectory(where.run.absolute()).bootstrap
    proxy = Look("Envoy", lambda: asyncio.run(envoy.running(where.admin, bootstrap)))
    rules = Look("rules", _rules).seen()
    said = status.seen()
    path = where.envoy or _run_by(said)
    program = Look("Envoy's program", partial(envoy.program, path))
    ads = where.ads or (None if isinstance(said, Unseen | str) else said[1])
    user = _left_alone(rules)
    way = Look("control plane", lambda: _way(where, ads, user), _WAY_SECONDS)

    yield from _dials_in(where, files.seen(), way.seen(), ads)
    yield program.judged("Envoy's program", lambda found: machine.envoy_program(path, *found))
    yield status.judged(
        "agent", lambda found: machine.agent(where.status, found if isinstance(found, str) else found[0])
    )
    found, binary = proxy.seen(), program.seen()
    known = found if isinstance(found, envoy.Running) else None
    version = None if isinstance(binary, Unseen) else binary[1]
    yield proxy.judged(
        "Envoy",
        lambda each: machine.envoy(each.envoy if isinstance(each, envoy.Running) else each, version),
    )
    yield _interception(rules, listening, known)
    yield Look("hosts file", lambda: _hosts(where, known, files.seen())).judged(
        "hosts file", machine.hosts_file
    )
    for at in sorted({*where.applications, *(known.applications if known else ())}):
        yield listening.judged(f"application port {at.port}", partial(machine.application, at))


def before(where: Asked) -> Iterator[Check]:
    """Look at a machine that is to be set up: whether an agent could run there, and its rules be made."""
    files, path = Look("credentials", partial(_files, where)), where.envoy or _ENVOY
    program = Look("Envoy's program", partial(envoy.program, path))
    way = Look("control plane", lambda: _way(where, where.ads, None), _WAY_SECONDS)
    yield kernel.python()
    yield fitness.user(where.uid, known=_is_user(where.uid))
    yield program.judged("Envoy's program", lambda found: machine.envoy_program(path, *found))
    yield fitness.directory("run directory", kernel.directory(where.run), "--run")
    yield from _dials_in(where, files.seen(), way.seen(), where.ads, before=True)
    for purpose, option, at in (
        ("admin", "--admin", where.admin),
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
        "traffic cannot be led to the proxy without it",
        "install iptables, or have the proxy called by address",
    )
    yield fitness.program("iptables", shutil.which("iptables-restore"), need, do)
    for at in where.applications:
        yield Look("sockets", kernel.listeners).judged(
            f"application port {at.port}", partial(machine.application, at)
        )


def _dials_in(
    where: Asked,
    files: Credentials | str | Unseen,
    way: Observed | str | Unseen | None,
    ads: HostPort | None,
    *,
    before: bool = False,
) -> Iterator[Check]:
    """Yield what concerns the way to the control plane: files, name, clock, what stands there."""
    if isinstance(files, Unseen):
        yield Check.unseen("credentials", files)
    else:
        name, error = ("", files) if isinstance(files, str) else (str(files.name), "")
        yield machine.credentials(where.credentials, name, error, before=before)
    shown = _certificate(where.credentials)
    if shown is not None:
        yield certificates.own(shown, datetime.now(UTC))
    ahead = way.clock_ahead if isinstance(way, Observed) else None
    yield clock.beside_control_plane(kernel.clock(), ahead)
    if ads is None:
        do = "say where it is with --ads (or MESHWRIGHT_ADS)"
        yield Check.unseen("control plane", Unseen("nobody has said where it is", do))
        return
    match way:
        case None:
            yield Check.ok(
                "control plane", f"somebody listens at {ads}, who that is only credentials can tell"
            )
        case Unseen():
            yield Check.unseen("control plane", way)
        case str():
            yield Check.unseen("control plane", Unseen(way, "mend the line `credentials` first"))
        case Observed():
            why = unreached(way)
            yield machine.control_plane(ads, why)
            if shown is not None and way.shown.serial:
                yield machine.workload(shown.whose, why)


def _files(where: Asked) -> Credentials | str:
    try:
        user = user_of(where.credentials) if where.credentials.exists() else None
        return credentials.read(where.credentials, shared=where.shared, user=user)
    except (CredentialsError, OSError) as error:
        return " ".join(str(error).split())


def _certificate(directory: Path) -> Certificate | None:
    with suppress(CredentialsError):
        found = credentials.certificate(directory / CHAIN_FILE)
        return Certificate(found.common_name, found.not_before, found.not_after)
    return None


def _run_by(status: tuple[Agent, HostPort] | str | Unseen) -> str:
    """Return the program that the agent runs as Envoy, where that can be seen; else what is found by name."""
    pids = () if isinstance(status, str | Unseen) else status[0].pids
    for pid in pids:
        with suppress(OSError):  # it has ended, or is not ours to look at
            return str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
    return _ENVOY


def _way(where: Asked, ads: HostPort | None, user: int | None) -> Observed | str | None:
    """Go the way to the control plane, as `user`: whose traffic rules leave alone, None where there are none.

    Without credentials it is only dialled, and None is that somebody listens.
    """
    if ads is None:
        return None
    if not where.credentials.exists():
        return asyncio.run(_dialled(ads))
    if user is not None:
        send_as(user)
    try:
        return asyncio.run(observe(Dialling(ads, where.credentials)))
    except CredentialsError as error:
        return " ".join(str(error).split())


async def _dialled(ads: HostPort) -> Observed | None:
    found, now = await listener(ads), datetime.now(UTC)
    if isinstance(found, HostPort):
        return None
    return Observed(ads, Shown("", "", now, now), now, found)


def _status(at: HostPort) -> tuple[Agent, HostPort] | str:
    """Ask the agent; return what it says, and where it dials in, or why it says nothing."""
    try:
        code, text = asked(at, STATUS_PATH)
    except AgentSilent as error:
        return str(error)
    if code != 200:
        return f"the agent at {at} answers with status {code}: {text.strip()[:200]}"
    found = json.loads(text)
    plane = found["control_plane"]
    said = Agent(
        found["proxy"],
        tuple(found["not_ready"]),
        tuple(found["envoy"]["pids"]),
        plane["reached"],
        plane["reason"] or "",
    )
    return said, HostPort.parse(plane["address"])


def _rules() -> Led | Unseen:
    if shutil.which("iptables-save") is None and shutil.which("ip6tables-save") is None:
        return Led()
    if os.geteuid() != 0:
        return Unseen("only root can read the rules", "ask as root")
    try:
        return led()
    except ProgramFailed as error:
        return Unseen(str(error), "look at what iptables says, as root")


def _left_alone(rules: Led | Unseen) -> int | None:
    return None if isinstance(rules, Unseen) or os.geteuid() != 0 else min(rules.users, default=None)


def _interception(
    rules: Led | Unseen, listening: "Look[tuple[machine.Listener, ...]]", proxy: envoy.Running | None
) -> Check:
    if isinstance(rules, Unseen):
        return Check.unseen("interception", rules)
    waits_at = None if proxy is None else proxy.waits_at
    return listening.judged("interception", lambda found: machine.interception(rules, found, waits_at))


def _hosts(where: Asked, proxy: envoy.Running | None, files: Credentials | str | Unseen) -> Hosts:
    try:
        found = where.hosts.read_text("utf-8").splitlines() if where.hosts.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        return Hosts(where.hosts, kept=False, error=f"{where.hosts} cannot be read: {error}")
    if BEGIN not in found:
        return Hosts(where.hosts, kept=False)
    if END not in found[found.index(BEGIN) :]:
        return Hosts(where.hosts, kept=True, whole=False)
    if proxy is None or not isinstance(files, Credentials):
        return Hosts(where.hosts, kept=True)
    wanted = lines(called(proxy.listeners), Namespace(files.name.namespace), where.cluster_domain)
    lacking = tuple(line.split()[1] for line in wanted if line not in found)
    return Hosts(where.hosts, kept=True, lacking=lacking)


def _is_user(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
