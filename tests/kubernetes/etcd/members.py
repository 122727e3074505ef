"""Real members of an etcd, for tests: started, killed, started again, and asked over etcd's JSON gateway."""

import base64
import contextlib
import json
import shutil
import signal
import ssl
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from meshwright.etcd.access import Endpoint
from tools.ports import free_port
from tools.real_parts.building import program
from tools.real_parts.keys import LOOPBACK
from tools.real_parts.parts import ETCD
from tools.real_parts.processes import Program, Service

_QUICK: Final = (
    "--heartbeat-interval=20",
    "--election-timeout=200",
    # The data need not survive a crash of the machine.
    "--unsafe-no-fsync",
    "--log-level=warn",
)


@dataclass(frozen=True, slots=True)
class Tls:
    """Flags of a member that speaks TLS, and the settings of a client that it accepts."""

    flags: tuple[str, ...]
    client: ssl.SSLContext


@dataclass
class RealMember:
    """One member: its process, its URL for clients, and its data."""

    service: Service
    url: str
    data: Path
    tls: ssl.SSLContext | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Return the endpoint for our client."""
        return Endpoint.parse(self.url)

    @property
    def runs(self) -> bool:
        """Return whether the process was not killed."""
        return self.service.process.poll() is None

    def kill(self) -> None:
        """Kill the member."""
        self.service.kill()

    def again(self) -> None:
        """Start the killed member again, and wait until it has a leader."""
        self.start()
        self.service.until_ready()

    def start(self) -> None:
        """Start the killed member again, without waiting."""
        self.service.process = self.service._start()

    def trust(self, tls: ssl.SSLContext) -> None:
        """Use other TLS settings for our own calls, after the member has got other certificates."""
        self.tls = tls
        self.service.program = replace(self.service.program, tls=tls)

    def stop(self) -> None:
        """Stop the process without an end, so that its connections stay open and are silent."""
        self.service.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the stopped process go on."""
        self.service.process.send_signal(signal.SIGCONT)

    def copy_data(self, to: Path) -> None:
        """Copy the data of the killed member."""
        shutil.copytree(self.data, to)

    def restore(self, copy: Path) -> None:
        """Put an older copy in the place of the killed member's data."""
        shutil.rmtree(self.data)
        shutil.copytree(copy, self.data)

    def ask(self, path: str, **body: object) -> dict[str, Any]:
        """Call a method by the JSON gateway, for example `kv/range`."""
        request = urllib.request.Request(f"{self.url}/v3/{path}", json.dumps(body).encode())  # noqa: S310
        with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:  # noqa: S310 - loopback
            return dict(json.load(answer))

    @property
    def leads(self) -> bool:
        """Return whether the member leads the others."""
        status = self.ask("maintenance/status")
        return bool(status["leader"] == status["header"]["member_id"])

    def put(self, key: bytes, value: bytes) -> None:
        """Write a key, whatever is there."""
        self.ask("kv/put", key=encoded(key), value=encoded(value))

    def delete(self, start: bytes, end: bytes) -> None:
        """Delete the keys of a span."""
        self.ask("kv/deleterange", key=encoded(start), range_end=encoded(end))

    def count(self, start: bytes, end: bytes) -> int:
        """Return the number of keys in a span."""
        found = self.ask("kv/range", key=encoded(start), range_end=encoded(end), count_only=True)
        return int(found.get("count", 0))

    def compact(self) -> None:
        """Drop the history before the present revision."""
        header = self.ask("kv/range", key=encoded(b"x"))["header"]
        self.ask("kv/compaction", revision=header["revision"], physical=True)


@contextlib.contextmanager
def etcd(
    folder: Path, *, count: int = 1, cluster: str = "one", flags: Sequence[str] = (), tls: Tls | None = None
) -> Iterator[list[RealMember]]:
    """Start the members of one etcd in a new folder, and stop them at the end of the block.

    Stores with different names of a cluster have different cluster IDs.
    """
    names = [f"m{number}" for number in range(count)]
    peers = {name: f"http://{LOOPBACK}:{free_port(LOOPBACK)}" for name in names}
    with contextlib.ExitStack() as ends:
        members = []
        for name in names:
            member = _member(folder / name, name, peers, cluster, flags, tls)
            ends.enter_context(member.service)
            members.append(member)
        for member in members:
            member.service.until_ready()
        try:
            yield members
        finally:
            for member in members:
                member.kill()  # an end in order takes a second, and nobody needs the data


def _member(
    folder: Path, name: str, peers: Mapping[str, str], cluster: str, flags: Sequence[str], tls: Tls | None
) -> RealMember:
    folder.mkdir(parents=True)
    url = f"{'http' if tls is None else 'https'}://{LOOPBACK}:{free_port(LOOPBACK)}"
    words = [
        f"--name={name}",
        f"--data-dir={folder / 'data'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers[name]}",
        f"--initial-advertise-peer-urls={peers[name]}",
        f"--initial-cluster={','.join(f'{each}={peer}' for each, peer in peers.items())}",
        f"--initial-cluster-token={cluster}",
        *_QUICK,
        *flags,
        *(() if tls is None else tls.flags),
    ]
    context = None if tls is None else tls.client
    service = Service(Program(program(ETCD), words, folder, f"{url}/health", context))
    return RealMember(service, url, folder / "data", context)


def encoded(data: bytes) -> str:
    """Return bytes in the form of the JSON gateway."""
    return base64.b64encode(data).decode()
