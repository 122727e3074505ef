"""Looks at a server whether it runs or not: the directory, the CA, the ports, and the clock."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from certs.custody import Custody
from certs.keys.material import PeerCertificate
from certs.peer import read_peer
from certs.state.privacy import exposures, user_of
from certs.state.shared_mark import read_mark
from meshwright.cli.checking import kernel
from meshwright.cli.checking.judgements import certificates, server
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.judgements.environment import clock as clocks
from meshwright.cli.checking.judgements.environment import ports
from meshwright.cli.checking.judgements.server import State
from meshwright.cli.checking.timed_looks import TimedLook
from meshwright.cli.errors import CommandFailed
from meshwright.cli.objects.settings import EtcdSettings, etcd_settings
from meshwright.controller.errors import SettingsError
from meshwright.controller.issuing.issuing import custody
from meshwright.controller.process.disk_space import probed
from meshwright.controller.settings.settings import Settings, load
from meshwright.mesh.host_port import HostPort


@dataclass(frozen=True, slots=True)
class ServerPaths:
    """Paths and addresses from the server's settings.

    `sources` are the names of the mesh's sources, empty if none is set. `cluster` has the settings for
    connecting to the cluster, if the cluster is a source, and `etcd` those for etcd, if etcd is used.
    `several` is True if the server shares its state with others.
    """

    state: Path
    mesh: Path | None
    sources: tuple[str, ...] = ()
    trust_domain: str = "cluster.local"
    shared: bool = False
    addresses: tuple[tuple[str, str, HostPort], ...] = ()
    cluster: Settings | None = None
    custody: Custody = field(default_factory=Custody)
    several: bool = False
    etcd: EtcdSettings | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> "ServerPaths":
        """Return the paths, addresses and sources of a server with these settings."""
        named = (("ADS", "ads_address"), ("HTTP", "http_address"), ("debug", "debug_address"))
        addresses = [
            (purpose, f"--{name.replace('_', '-')}", getattr(settings, name)) for purpose, name in named
        ]
        addresses += [(name, "driver_addresses", at) for name, at in settings.driver_addresses.items()]
        return cls(
            settings.state,
            settings.mesh,
            settings.sources,
            settings.trust_domain,
            settings.shared_state,
            tuple(addresses),
            settings if settings.kubernetes else None,
            custody(settings),
            etcd=etcd_of(settings.model_dump()) if settings.etcd_used_by else None,
        )


def etcd_of(settings: Mapping[str, object]) -> EtcdSettings | None:
    """Return the settings for etcd among all settings of a server, None if the server does not use etcd."""
    fields = EtcdSettings.model_fields.keys() - {"config"}
    if not settings.get("etcd_endpoints"):
        return None
    return etcd_settings({name: settings[name] for name in sorted(fields) if name in settings})


def paths_of_flags(flags: Mapping[str, object]) -> ServerPaths:
    """Return the paths of a server with these command-line flags; raise CommandFailed.

    The flags need not name a source.
    """
    try:
        return ServerPaths.from_settings(load(flags, nothing_to_read=True))
    except SettingsError as error:
        raise CommandFailed(error) from error


def directory(paths: ServerPaths) -> Check:
    """Check the state directory by writing and removing a small file, as the server does."""
    return TimedLook("state directory", lambda: _seen(paths.state)).judged(
        "state directory", lambda state: server.state_directory(state, shared=paths.shared)
    )


def _seen(path: Path) -> State:
    if not path.is_dir():
        return State(path, there=False)
    room = os.statvfs(path)
    return State(
        path,
        there=True,
        exposed=exposures(path, user_of(path)),
        unwritable=probed(path),
        free=room.f_bavail * room.f_frsize,
    )


def authority(paths: ServerPaths, now: datetime) -> Check:
    """Check the CA's certificate, without reading the CA's key."""
    result, files = TimedLook("CA", lambda: _ca(paths)).seen(), paths.custody.authority
    if isinstance(result, UnavailableCheck):
        return Check.unseen("CA", result)
    if files is not None:
        return certificates.judge_files_of_other(result, now, str(files.place))
    if result is None and (mark := read_mark(paths.state)) is not None:
        return Check.ok("CA", f"the CA {mark.authority} is in the store of several servers")
    if result is None:
        return Check.warning("CA", f"{paths.state} does not have a CA yet", "the first start creates one")
    return certificates.authority(result, now)


def _ca(paths: ServerPaths) -> PeerCertificate | None:
    files = paths.custody.authority
    path = paths.state / "ca" / "ca.pem" if files is None else files.now().certificate
    return read_peer(path.read_bytes()) if path.exists() else None


def clock(paths: ServerPaths, issued: Iterable[datetime]) -> Check:
    """Check the clock against the creation times of the CA and of proxy certificates."""
    result = TimedLook("CA", lambda: _ca(paths)).seen()
    made = [] if result is None or isinstance(result, UnavailableCheck) else [result.not_before]
    return clocks.beside_certificates(kernel.clock(), [*made, *issued])


def all_ports(paths: ServerPaths, judge: Callable[[ports.Port], Check]) -> Iterator[Check]:
    """Yield the result of `judge` for each address of the server, with the present listeners."""
    for purpose, setting, at in paths.addresses:
        yield judge(kernel.port(purpose, setting, at))
