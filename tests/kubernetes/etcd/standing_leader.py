"""A process that stands for leadership: `python -m tests.kubernetes.etcd.standing_leader URL MESH REPLICA`.

It prints `leads EPOCH` and `ended EPOCH`. For a line `change` it changes the record with the epoch of its
first term, and for `replace` it replaces the record that it changed last. For both it prints `done`, or the
name of the error.
"""

import asyncio
import sys
from typing import Final

import structlog

from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import Client
from meshwright.etcd.lease import Terms
from meshwright.records.contract import Epoch, RecordsError, ReplicaId
from meshwright.records.etcd.layout import Layout
from meshwright.records.etcd.store import EtcdRecords
from meshwright.records.key import key_of
from meshwright.records.update import Version, Writer, update

TERMS: Final = Terms(lasts=3, every=0.2, patience=2.0)
RECORD: Final = key_of("authority")


async def stand(url: str, mesh: str, replica: ReplicaId) -> None:
    """Stand for leadership until the end of the input."""
    epochs: list[Epoch] = []

    async def work(epoch: Epoch) -> None:
        epochs.append(epoch)
        _print(f"leads {epoch}")
        try:
            await asyncio.Event().wait()
        finally:
            _print(f"ended {epoch}")

    async with Client(Access((Endpoint.parse(url),))) as client:
        store = EtcdRecords(client, Layout(mesh), replica, TERMS)
        leading = asyncio.create_task(store.lead(work))
        version = Version()
        while command := (await asyncio.to_thread(sys.stdin.readline)).strip():
            writer = Writer(replica, epochs[0])
            try:
                if command == "change":
                    version = await update(store, RECORD, lambda _: {"by": replica}, writer)
                else:
                    await store.write(RECORD, b"replaced", version.revision)
            except RecordsError as error:
                _print(type(error).__name__)
            else:
                _print("done")
        leading.cancel()
        await asyncio.gather(leading, return_exceptions=True)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(stand(sys.argv[1], sys.argv[2], ReplicaId(sys.argv[3])))
