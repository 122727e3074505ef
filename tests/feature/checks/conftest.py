"""Fixtures of used state directories and the programs that use them."""

from tests.feature.identity.conftest import serve
from tests.feature.rejection.conftest import join
from tests.feature.state.conftest import program, used, used_once

__all__ = ["join", "program", "serve", "used", "used_once"]
