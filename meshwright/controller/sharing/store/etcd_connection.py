"""Connection to the etcd that the settings name."""

import asyncio
from contextlib import AbstractAsyncContextManager

from meshwright.controller.errors import StartupError
from meshwright.controller.settings.etcd_fields import EtcdFields
from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import Client
from meshwright.etcd.errors import AccessError
from meshwright.tls.contents import TlsFiles
from xds.server.streams.wakeups import once_for_all


def etcd_access(settings: EtcdFields) -> Access:
    """Return the members of etcd, and the files with credentials. Raises AccessError."""
    return Access(
        tuple(map(Endpoint.parse, settings.etcd_endpoints)),
        TlsFiles(settings.etcd_ca, settings.etcd_certificate, settings.etcd_key),
        settings.etcd_user_file,
    )


def etcd_client(settings: EtcdFields) -> Client:
    """Return a client of etcd, without a connection. Raises StartupError."""
    try:
        access = etcd_access(settings)
        access.user()  # so that an unusable file is an error at the start, and not at the first call
        return Client(access)
    except AccessError as error:
        raise StartupError(f"etcd cannot be used: {error}") from error


class EtcdConnection(AbstractAsyncContextManager[None]):
    """Use of a client on one event loop; `__aexit__` is permitted without `__aenter__`, too."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __aenter__(self) -> None:
        """Begin on the running event loop, without waiting for etcd."""
        with once_for_all(asyncio.get_running_loop()):
            await self._client.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        """End all calls and connections."""
        await self._client.close()
