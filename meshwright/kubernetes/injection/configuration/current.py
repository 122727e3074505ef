"""The configuration in force: taken as a whole or not at all, wherever it is read from."""

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
    """Counts what was read."""

    def injection_configuration(self, *, taken: bool) -> None:
        """Count a configuration that was taken, or was not."""
        ...


class CurrentConfig:
    """What is in force: `config` is None while there is none, `error` says what is wrong with the newest.

    A bad one changes nothing; if it is the first there is none until it is mended. `home` is the control
    plane's namespace, which it knows better than any configuration.
    """

    def __init__(self, home: str, counted: ReadCounter) -> None:
        self._home, self._counted = Namespace(home), counted
        self.config: InjectionConfig | None = None
        self.error = ""

    @property
    def is_one(self) -> bool:
        """Say whether it may become another one."""
        return False

    @property
    def stale(self) -> str:
        """Why what is in force may be old, empty where nothing is known against it."""
        return ""

    async def first(self) -> None:
        """Read it for the first time, if that is yet to be; what fails is tried again later."""

    async def following(self, changed: Callable[[], None]) -> None:
        """Keep it current, and say each time that it was read, until cancelled."""
        raise NotImplementedError

    def take(self, document: object, where: str) -> None:
        """Put what a document says in force, if all of it is right; `where` it stands, for people."""
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
        """Note that what was read is not taken, and why."""
        self.error = " ".join(reason.split())
        self._counted.injection_configuration(taken=False)
        _log.error("injection configuration rejected", reason=self.error, kept=self.config is not None)
