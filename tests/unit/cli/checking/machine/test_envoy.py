"""Tests of the user as whom a program named by others is run."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from meshwright.agent.calling.request import NOBODY
from meshwright.cli.checking.machine import envoy


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another")
def test_root_runs_the_program_of_another_user_as_that_user() -> None:
    """The path of the program comes from the answer of an agent, so that root must not run it as root."""
    everybody = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH
    with tempfile.TemporaryDirectory() as folder:  # other users may enter it, unlike pytest's directory
        program = Path(folder, "envoy")
        program.write_text("#!/bin/sh\nid -u; id -G\n")
        for path in (program.parent, program):
            path.chmod(everybody)
        assert f"'{NOBODY}\\n{NOBODY}'" in envoy.program(str(program), NOBODY)[0]
        assert "'0\\n" in envoy.program(str(program))[0]
