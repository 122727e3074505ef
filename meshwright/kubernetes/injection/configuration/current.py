"""The applied configuration of the injector, from any source: accepted or rejected as a whole."""

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
    """Counter of accepted and rejected configurations of the injector, for a metric."""

    def injection_configuration(self, *, taken: bool) -> None:
        """Count a configuration of the injector as accepted (`taken`) or rejected."""
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
        """Return whether the injector's configuration may change while the server runs."""
        return False

    @property
    def stale(self) -> str:
        """Return why the applied configuration may be outdated, or an empty text."""
        return ""

    async def first(self) -> None:
        """Read the injector's configuration for the first time if necessary; a failure is repeated later."""

    async def following(self, changed: Callable[[], None]) -> None:
        """Read each new form of the configuration until cancelled; call `changed` after each reading."""
        raise NotImplementedError

    def take(self, document: object, where: str) -> None:
        """Apply a configuration if all of it is valid; `where` names the document's place in messages."""
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
        """Record and log that the injector's configuration was rejected, with the reason."""
        self.error = " ".join(reason.split())
        self._counted.injection_configuration(taken=False)
        _log.error("injection configuration rejected", reason=self.error, kept=self.config is not None)
