"""Log levels of a running program: the general level, and levels of single loggers or packages."""

import logging
import sys
from collections.abc import Mapping
from typing import Final

from meshwright.controller.process.logger_names import LOGGER_NAMES, with_parents
from meshwright.controller.process.logs import LogLevel
from meshwright.mesh.problems.spelling import nearest

KEPT: Final = "admin.audit"
"""The logger of administrative actions, which cannot be silenced, so that every action is seen."""

_PACKAGES: Final = {
    "meshwright.kubernetes.admission": "admission",
    "meshwright.kubernetes.cni": "cni",
    "meshwright.kubernetes.injection": "injector",
    "meshwright.kubernetes.status": "reporting",
    "meshwright.traffic": "observed",
}
"""Packages whose logger name differs from their place inside `meshwright`."""

_LISTED: Final = with_parents(LOGGER_NAMES)


class LogLevels:
    """The levels in force. A logger without a level has the package's, and finally the general one."""

    def levels(self) -> Mapping[str, str]:
        """Return the levels by logger, sorted; the general level has the empty name and is first.

        For example: `{"": "info", "delivery.loop": "debug"}`.
        """
        table = logging.root.manager.loggerDict
        own = {
            name: item.level
            for name, item in table.items()
            if isinstance(item, logging.Logger) and item.level
        }
        result = {"": logging.root.level} | own
        return {name: logging.getLevelName(level).lower() for name, level in sorted(result.items())}

    def set_level(self, logger: str, level: str | None) -> None:
        """Set the level of a logger or package, or remove it (`None`); the empty name sets the general level.

        Raises ValueError with the valid values for an unknown level or name.
        """
        if level is not None and level not in set(LogLevel):
            raise ValueError(f"level is {level!r:.60}: must be {', '.join(LogLevel)}")
        if not logger and level is None:
            raise ValueError("level is missing: only a logger can do without one of its own")
        if logger == KEPT:
            raise ValueError(f"logger is {logger!r}: administrative actions are logged at every level")
        # Modules without a line yet have no logger, but their names must be accepted.
        known = {*_LISTED, *map(_logger, list(sys.modules)), *logging.root.manager.loggerDict}
        if logger and logger not in known:
            near = nearest(logger, known)
            meant = f"did you mean {near}?" if near else "must be a module or package, for example delivery"
            raise ValueError(f"logger is {logger!r:.60}: {meant}")
        logging.getLogger(logger).setLevel(logging.NOTSET if level is None else level.upper())


def _logger(module: str) -> str:
    """Return the name of a module's logger. Users know this name, so the name stays when a module moves."""
    for package, logger in _PACKAGES.items():
        if module == package or module.startswith(f"{package}."):
            return logger + module.removeprefix(package)
    return module.removeprefix("meshwright.")
