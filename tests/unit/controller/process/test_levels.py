"""Tests of logger names, which are independent of a module's place in `meshwright`."""

import logging
from collections.abc import Iterator

import pytest

import meshwright.kubernetes.status.object_status
import meshwright.traffic.traffic  # noqa: F401  # the names below are those of modules that are loaded
from meshwright.controller.process.levels import LogLevels

NAMES = (
    "controller",
    "controller.process.levels",
    "reporting",
    "reporting.standing",
    "observed.traffic",
    "certs",
)


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """Reset the levels after a test."""
    yield
    for name in NAMES:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize("name", NAMES)
def test_level_of_a_package_or_module_can_be_set(name: str) -> None:
    """A level is set and read by the logger's name in the log."""
    LogLevels().set_level(name, "debug")
    assert LogLevels().levels()[name] == "debug"


@pytest.mark.parametrize(("name", "near"), [("reportin", "reporting"), ("controler", "controller")])
def test_misspelt_logger_name_is_refused_with_a_suggestion(name: str, near: str) -> None:
    """The error suggests the most similar logger name."""
    with pytest.raises(ValueError, match=f"did you mean {near}\\?"):
        LogLevels().set_level(name, "debug")
