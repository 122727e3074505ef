"""An authenticator whose answer a test sets."""

from xds.cache import NodeKey
from xds.hooks import Peer
from xds.protocol.wire import Node


class ByCertificate:
    """An authenticator with a settable node key."""

    key = NodeKey("one")

    def authenticate(self, peer: Peer) -> NodeKey:
        """Return the present key."""
        return self.key

    def accept_node(self, node_key: NodeKey, node: Node) -> None:
        """Accept every node."""
