"""Who says who a client is, where a test decides it."""

from xds.cache import NodeKey
from xds.hooks import Peer
from xds.protocol.wire import Node


class ByCertificate:
    """Calls a peer by an attribute that the test sets."""

    key = NodeKey("one")

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the present key."""
        return self.key

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept."""
