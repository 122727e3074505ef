"""As whom a program is run that somebody else has named."""

import os
import stat

import pytest

from agent.calling.request import NOBODY
from cli.checking import envoy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another")
def test_root_runs_the_program_of_another_user_as_that_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whoever answers where an agent is asked names it."""
    folder = tmp_path_factory.mktemp("program")
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)
    program = folder / "envoy"
    program.write_text("#!/bin/sh\nid -u; id -G\n")
    program.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    assert f"'{NOBODY}\\n{NOBODY}'" in envoy.program(str(program), NOBODY)[0]
    assert "'0\\n" in envoy.program(str(program))[0]
