"""Looks at the etcd that a server uses, with the server's own credentials."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from meshwright.cli.checking.judgements import etcd
from meshwright.cli.checking.judgements.check import Check, UnavailableCheck
from meshwright.cli.checking.timed_looks import TimedLook
from meshwright.cli.errors import CommandFailed
from meshwright.cli.objects.settings import EtcdSettings

if TYPE_CHECKING:
    from meshwright.etcd.health_values import History, MemberHealth

_SECONDS: Final = 3.0


def checks(settings: EtcdSettings | None) -> Iterator[Check]:
    """Yield the checks of an etcd; none if the server does not use one."""
    if settings is None:
        return
    looked = TimedLook("etcd", lambda: asyncio.run(_looked(settings))).seen()
    if isinstance(looked, UnavailableCheck):
        yield Check.unseen(etcd.NAME, looked)
        return
    healths, history = looked
    yield etcd.members(healths)
    if isinstance(history, str):
        yield Check.unseen(etcd.HISTORY, UnavailableCheck(history))
    else:
        yield etcd.history(history)


async def _looked(settings: EtcdSettings) -> "tuple[tuple[MemberHealth, ...], History | str]":
    """Return the health of each member, and the history or the reason why it cannot be read."""
    # Imported only here, because gRPC takes time.
    from meshwright.controller.sharing.store.etcd_connection import etcd_access
    from meshwright.etcd.client import Client
    from meshwright.etcd.errors import AccessError, EtcdError
    from meshwright.etcd.health import history, member_healths

    key = f"/meshwright/{settings.trust_domain}/records".encode()
    try:
        access = etcd_access(settings)
        healths = await member_healths(access, _SECONDS)
        # The key of the records is readable by each server, and need not exist.
        async with Client(access) as client:
            return healths, await history(client, key)
    except AccessError as error:
        raise CommandFailed(error) from error
    except EtcdError as error:
        return healths, str(error)
