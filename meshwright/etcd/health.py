"""Health of the members of an etcd, for people: each member is asked by itself."""

import asyncio

from meshwright.etcd.access import Access, Endpoint
from meshwright.etcd.client import Client
from meshwright.etcd.errors import EtcdError, RevisionGoneError
from meshwright.etcd.health_values import History, MemberHealth
from meshwright.etcd.members import Member
from meshwright.etcd.methods import STATUS
from meshwright.tls.contents import TlsContents
from protos.meshwright.etcd.v3 import etcd_pb2 as pb


async def member_healths(access: Access, seconds: float) -> tuple[MemberHealth, ...]:
    """Return the health of each member, in the order of the endpoints; raise AccessError."""
    tls = access.tls_contents()
    return tuple(await asyncio.gather(*(_health(endpoint, tls, seconds) for endpoint in access.endpoints)))


async def _health(endpoint: Endpoint, tls: TlsContents, seconds: float) -> MemberHealth:
    member = Member(endpoint, tls)
    try:
        status = await member.call(STATUS, pb.StatusRequest(), seconds)
    except EtcdError as error:
        return MemberHealth(str(endpoint), error=str(error))
    finally:
        await member.close()
    return MemberHealth(
        str(endpoint),
        version=status.version,
        size=status.dbSize,
        quota=status.dbSizeQuota,
        has_leader=status.leader != 0,
        alarms=tuple(status.errors),
    )


async def history(client: Client, key: bytes) -> History:
    """Return the history of a store, seen at a key that the client may read; raise EtcdError.

    Only a store that was never compacted can still be asked for its first revision.
    """
    newest = await client.revision(key)
    try:
        await client.get(key, revision=1)
    except RevisionGoneError:
        return History(newest, is_whole=False)
    return History(newest, is_whole=True)
