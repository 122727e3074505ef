"""The configuration in force, from any source: accepted as a whole or rejected as a whole."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from meshwright.kubernetes.injection.configuration.configuration import (
    ConfigurationError,
    InjectionConfig,
    read,
)
from meshwright.mesh.names import Namespace

_log = structlog.get_logger("injector.configured")


class ReadCounter(Protocol):
    """Counter of read configurations."""

    def injection_configuration(self, *, taken: bool) -> None:
        """Count a configuration as accepted or rejected."""
        ...


class CurrentConfig:
    """The configuration in force: `config` is None until the first valid one, `error` the newest fault.

    An invalid configuration changes nothing. `home` is the control plane's namespace, which replaces the
    namespace in the configuration.
    """

    def __init__(self, home: str, counted: ReadCounter) -> None:
        self._home, self._counted = Namespace(home), counted
        self.config: InjectionConfig | None = None
        self.error = ""

    @property
    def is_one(self) -> bool:
        """Return whether the configuration may change while the server runs."""
        return False

    @property
    def stale(self) -> str:
        """Return the reason why the configuration in force may be outdated, or an empty text."""
        return ""

    async def first(self) -> None:
        """Read the configuration for the first time if necessary; a failed reading is repeated later."""

    async def following(self, changed: Callable[[], None]) -> None:
        """Keep the configuration current until cancelled, and call `changed` after each reading."""
        raise NotImplementedError

    def take(self, document: object, where: str) -> None:
        """Put a document in force if all of it is valid; `where` names its place in messages."""
        again = self.config is not None
        try:
            self.config = replace(read(document, where), control_plane_namespace=self._home)
        except ConfigurationError as error:
            self.refuse(str(error))
            return
        self.error = ""
        self._counted.injection_configuration(taken=True)
        if again:
            _log.info("injection configuration loaded", where=where)

    def refuse(self, reason: str) -> None:
        """Record that a configuration was rejected, with the reason."""
        self.error = " ".join(reason.split())
        self._counted.injection_configuration(taken=False)
        _log.error("injection configuration rejected", reason=self.error, kept=self.config is not None)
