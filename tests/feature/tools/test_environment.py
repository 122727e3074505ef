"""What images of the command have of its environment."""

import subprocess
import sys
from pathlib import Path

from tools.real_parts.images.environments import HOME, environment
from tools.real_parts.images.layers import Text


def test_an_environment_has_all_that_the_command_imports_and_nothing_for_its_developers() -> None:
    """By what the interpreter has imported when the command has begun."""
    code = (
        "import sys, meshwright.cli.agent_program, meshwright.cli.process.server_program;"
        "print(*{m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)})"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    found = environment()
    taken = {str(path) for path in found.values() if isinstance(path, Path)} | set(found)
    lacking = {Path(name).parent.name for name in said.split() if name not in taken}
    assert lacking <= {"_distutils_hack", "grpc_tools"}  # which are imported where they happen to be
    assert not any("/pytest/" in name or "/mypy/" in name for name in found)
    assert isinstance(found[f"{HOME}/bin/meshwright"], Text)
