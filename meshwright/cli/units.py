"""Text of systemd units for Meshwright's programs, each with only the necessary privileges. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

AGENT_UNIT: Final = "meshwright-agent.service"
SERVER_UNIT: Final = "meshwright.service"
INTERCEPT_UNIT: Final = "meshwright-intercept.service"

HIDDEN: Final = tuple(map(PurePosixPath, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
"""Directories that ProtectHome= and PrivateTmp= hide from a unit."""

_PLAIN: Final = re.compile(r"[\w@+=:,./\[\]-]+")

_CONFINED: Final = """\
NoNewPrivileges=yes
CapabilityBoundingSet={capabilities}
AmbientCapabilities={ambient}
LockPersonality=yes
MemoryDenyWriteExecute=yes
PrivateDevices=yes
PrivateTmp=yes
ProcSubset={processes}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc={others}
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
UMask=0077
"""

_RESTART: Final = """\
# Restarted for ever, with growing pauses (systemd before 254 waits for RestartSec= each time).
Restart=on-failure
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
"""


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a systemd unit: program, arguments, and Meshwright's environment variables."""

    program: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str]

    def line(self) -> str:
        """Return the command line for ExecStart= of a systemd unit."""
        return " ".join(quoted(item) for item in (self.program, *self.arguments))

    def environment(self) -> str:
        """Return the environment variables as Environment= lines of a systemd unit, sorted by name."""
        pairs = sorted(self.variables.items())
        return "".join(f"Environment={quoted(f'{name}={value}', dollars=False)}\n" for name, value in pairs)


@dataclass(frozen=True, slots=True)
class Server:
    """Values for the unit of `serve`: `state` is below /var/lib; `drain` and `heartbeat` are in seconds.

    `drain` is the longest time from SIGTERM to the end of the last stream.
    systemd passes a `kubeconfig` as a credential, so the file may be readable by root only.
    """

    command: Command
    user: str
    state: PurePosixPath
    drain: float
    heartbeat: float
    low_ports: bool
    kubeconfig: PurePosixPath | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """Values for the unit of `agent`: `run` is below /run; `drain` is the longest drain time, in seconds."""

    command: Command
    user: str
    run: PurePosixPath
    written: tuple[PurePosixPath, ...]
    drain: float
    low_ports: bool
    tproxy: bool


def quoted(word: str, *, dollars: bool = True) -> str:
    """Return a word with the quotes and escapes of a unit (systemd.syntax(7)).

    `dollars`: double each `$`, because systemd expands variables in ExecStart= only.
    """
    word = word.replace("%", "%%")
    if dollars:
        word = word.replace("$", "$$")
    if _PLAIN.fullmatch(word.replace("%", "").replace("$", "")):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def hidden(path: PurePosixPath) -> bool:
    """Return whether a systemd unit of Meshwright cannot see a path."""
    return any(path.is_relative_to(pure_posix_path) for pure_posix_path in HIDDEN)


def server_unit(server: Server) -> str:
    """Return the text of the systemd unit for the control plane."""
    return (
        _head("Meshwright: control plane of the mesh")
        + f"""\
[Service]
Type=notify
# The unit is ready when /healthz/ready is: the mesh has been read, and proxies can connect.
TimeoutStartSec=5min
ExecStart={server.command.line()}{_HANDED if server.kubeconfig else ""}
ExecReload=/bin/kill -HUP $MAINPID
{server.command.environment()}{_credential(server.kubeconfig)}\
# A process whose event loop is blocked for this time is killed; the log shows where it was blocked.
WatchdogSec={max(30, round(3 * server.heartbeat))}
{_RESTART}\
# Streams have {server.drain:g} s to end; SIGTERM goes to the server.
TimeoutStopSec={round(server.drain) + 20}
KillMode=mixed
User={server.user}
DynamicUser=yes
StateDirectory={server.state.relative_to("/var/lib")}
StateDirectoryMode=0700
LimitNOFILE=1048576
# A core dump would contain keys.
LimitCORE=0
OOMScoreAdjust=-500
"""
        + _confined(_capabilities(low_ports=server.low_ports))
        + _TAIL
    )


def agent_unit(agent: Agent) -> str:
    """Return the text of the systemd unit for the agent, which runs Envoy."""
    written = f"ReadWritePaths={' '.join(quoted(str(path), dollars=False) for path in agent.written)}\n"
    return (
        _head("Meshwright agent: Envoy beside a workload")
        + f"""\
[Service]
Type=notify
# The unit is ready when the proxy serves. Without its control plane it waits (see `systemctl status`).
TimeoutStartSec=infinity
ExecStart={agent.command.line()}
ExecReload=/bin/kill -HUP $MAINPID
{agent.command.environment()}\
# A process whose event loop is blocked for this time is killed; the log shows where it was blocked.
WatchdogSec=60
# The agent restarts Envoy up to ten times itself; after that systemd restarts the agent.
{_RESTART}\
# SIGTERM goes to the agent alone, which drains Envoy ({agent.drain:g} s at most) and ends it.
TimeoutStopSec={round(agent.drain) + 20}
KillMode=mixed
# Traffic of this user is not intercepted, so only the agent may run as this user; the rules have its uid.
User={agent.user}
RuntimeDirectory={agent.run.relative_to("/run")}
RuntimeDirectoryMode=0700
{written if agent.written else ""}\
LimitNOFILE=1048576
# A core dump would contain keys.
LimitCORE=0
OOMScoreAdjust=-500
# /dev/shm is shared by Envoy's epochs: a private /tmp does not touch it.
"""
        + _confined(_capabilities(low_ports=agent.low_ports, tproxy=agent.tproxy))
        + _TAIL
    )


def intercept_unit(command: Command) -> str:
    """Return the unit for interception; `command` is `meshwright intercept` with arguments."""
    clean = Command(command.program, ("intercept", "--clean"), {}).line()
    return (
        f"""\
[Unit]
Description=Redirect this machine's traffic to its mesh proxy
# Rules are set when the proxy serves, and removed when this unit stops (in a shutdown before the agent).
# The rules stay while the agent restarts or is stopped, so calls do not bypass the proxy.
Wants={AGENT_UNIT}
After={AGENT_UNIT}
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStartPre=/bin/systemctl is-active --quiet {AGENT_UNIT}
ExecStart={command.line()}
# Also removes incomplete rules.
ExecStopPost={clean}
{command.environment()}\
{_RESTART}\
# Programs that set rules share a lock in /run.
ReadWritePaths=/run
# CAP_NET_ADMIN is for the rules; the other capabilities are for finding the owners of their ports.
"""
        + _confined(("CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"), root=True)
        + _TAIL
    )


_HANDED: Final = " --kubeconfig ${CREDENTIALS_DIRECTORY}/kubeconfig"


def _credential(kubeconfig: PurePosixPath | None) -> str:
    if kubeconfig is None:
        return ""
    return f"""\
# Copied for this user at each start, so the file may be readable only by root. Use absolute paths in it.
LoadCredential=kubeconfig:{str(kubeconfig).replace("%", "%%")}
"""


_TAIL: Final = """
[Install]
WantedBy=multi-user.target
"""


def _head(description: str) -> str:
    return f"""\
[Unit]
Description={description}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

"""


def _capabilities(*, low_ports: bool = False, tproxy: bool = False) -> tuple[str, ...]:
    # Ports below 1024 need CAP_NET_BIND_SERVICE; transparent sockets (IP_TRANSPARENT) need CAP_NET_RAW.
    names = {"CAP_NET_BIND_SERVICE": low_ports, "CAP_NET_RAW": tproxy}
    return tuple(name for name, needed in names.items() if needed)


def _confined(capabilities: Iterable[str], *, root: bool = False) -> str:
    words = " ".join(capabilities)
    return _CONFINED.format(
        capabilities=words,
        # Root has the capabilities of the bounding set without ambient ones.
        ambient="" if root else words,
        processes="all" if root else "pid",
        others="default" if root else "invisible",
    )
