"""Event broker for events that a driver must handle at once, besides new snapshots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CertificateRevoked:
    """A proxy's certificate was revoked and must be refused from now on."""

    common_name: str
    serial: str


@dataclass(frozen=True, slots=True)
class RootsChanged:
    """The trusted roots or the signing CA changed, so valid certificates may have become invalid."""


Event = CertificateRevoked | RootsChanged
Listener = Callable[[Event], None]


class Events(Protocol):
    """A source of events for a driver, to which listeners can subscribe."""

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with each event from now on, on the event loop; return a function to end this.

        A listener must return at once and not raise.
        """


class Broker:
    """Passes events to each listener, in the order of publication and of subscription."""

    def __init__(self) -> None:
        self._listeners: dict[int, Listener] = {}
        self._number = 0

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener for all later events; return a function to remove the listener."""
        number = self._number = self._number + 1
        self._listeners[number] = listener

        def unsubscribe() -> None:
            self._listeners.pop(number, None)

        return unsubscribe

    def publish(self, event: Event) -> None:
        """Pass an event to every listener."""
        for listener in tuple(self._listeners.values()):
            listener(event)
