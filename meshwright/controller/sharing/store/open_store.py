"""The shared store, open for the time of one command."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from meshwright.controller.settings.settings import Settings
from meshwright.controller.sharing.store.backends import backend, replica_id
from meshwright.controller.sharing.store.store_thread import StoreThread
from meshwright.transfer.mesh_store import MeshStore, explained


@contextmanager
def open_store(settings: Settings, clock: Callable[[], datetime]) -> Iterator[MeshStore]:
    """Open the store in the settings for the context. Raises StartupError, StateError."""
    replica = replica_id()
    store, thread = backend(settings, replica, clock), StoreThread()
    try:
        with explained():
            thread.run(store.connection.__aenter__())
        yield MeshStore(store.records, replica, thread, settings.state, settings.key_passphrase_file)
    finally:
        thread.close(lambda: store.connection.__aexit__(None, None, None))
