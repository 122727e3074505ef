"""Names of loggers, which do not follow the place of a module inside `meshwright`."""

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
    """Take the levels away again."""
    yield
    for name in NAMES:
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.parametrize("name", NAMES)
def test_a_package_and_a_module_have_a_level(name: str) -> None:
    """By the name that stands in the log."""
    LogLevels().set_level(name, "debug")
    assert LogLevels().levels()[name] == "debug"


@pytest.mark.parametrize(("name", "near"), [("reportin", "reporting"), ("controler", "controller")])
def test_a_name_that_is_misspelt_is_asked_about(name: str, near: str) -> None:
    """With the name that may be meant."""
    with pytest.raises(ValueError, match=f"did you mean {near}\\?"):
        LogLevels().set_level(name, "debug")
