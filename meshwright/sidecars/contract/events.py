"""The event broker: what a driver must hear of at once, besides the snapshots of its proxies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CertificateRevoked:
    """A proxy's certificate was revoked: whoever shows it is to be refused from now on."""

    common_name: str
    serial: str


@dataclass(frozen=True, slots=True)
class RootsChanged:
    """Other roots are trusted, or another one signs: certificates that were good may be so no longer."""


Event = CertificateRevoked | RootsChanged
Listener = Callable[[Event], None]


class Events(Protocol):
    """Where events are heard of."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each event from now on, on the event loop; return what ends that.

        A listener returns at once and does not raise.
        """


class Broker:
    """Passes events on, in the order in which they are published, to each listener in order."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._number = 0

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; return what takes it away."""
        number = self._number = self._number + 1
        self._listeners[number] = listener

        def unsubscribe() -> None:
            self._listeners.pop(number, None)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Tell everybody."""
        for listener in tuple(self._listeners.values()):
            listener(event)
