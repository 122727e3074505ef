"""Methods of etcd's services for the client, with the types of the messages."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message

from protos.meshwright.etcd.v3 import etcd_pb2 as pb

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


@dataclass(frozen=True, slots=True)
class Method(Generic[Request, Response]):
    """One method, for example `etcdserverpb.KV/Range`."""

    service: str
    name: str
    request: type[Request]
    response: type[Response]

    @property
    def path(self) -> str:
        """Return the path of the method in HTTP/2."""
        return f"/etcdserverpb.{self.service}/{self.name}"


RANGE: Final = Method("KV", "Range", pb.RangeRequest, pb.RangeResponse)
PUT: Final = Method("KV", "Put", pb.PutRequest, pb.PutResponse)
TXN: Final = Method("KV", "Txn", pb.TxnRequest, pb.TxnResponse)
GRANT: Final = Method("Lease", "LeaseGrant", pb.LeaseGrantRequest, pb.LeaseGrantResponse)
REVOKE: Final = Method("Lease", "LeaseRevoke", pb.LeaseRevokeRequest, pb.LeaseRevokeResponse)
AUTHENTICATE: Final = Method("Auth", "Authenticate", pb.AuthenticateRequest, pb.AuthenticateResponse)
STATUS: Final = Method("Maintenance", "Status", pb.StatusRequest, pb.StatusResponse)

KEEP_ALIVE: Final = Method("Lease", "LeaseKeepAlive", pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse)
"""Both directions are streams."""
WATCH: Final = Method("Watch", "Watch", pb.WatchRequest, pb.WatchResponse)
"""Both directions are streams."""
