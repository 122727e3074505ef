"""Test of the Python environment that is copied into images."""

import subprocess
import sys
from pathlib import Path

from tools.real_parts.images.environments import HOME, environment
from tools.real_parts.images.layers import Text


def test_image_environment_has_all_imports_and_no_developer_packages() -> None:
    """The required files are those of the modules that the commands have imported."""
    code = (
        "import sys, meshwright.cli.agent_program, meshwright.cli.process.server_program;"
        "print(*{m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)})"
    )
    stdout = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    result = environment()
    taken = {str(path) for path in result.values() if isinstance(path, Path)} | set(result)
    lacking = {Path(name).parent.name for name in stdout.split() if name not in taken}
    # These are imported only where they are installed; aiohttp tries `backports.zstd`.
    assert lacking <= {"_distutils_hack", "backports", "grpc_tools"}
    assert not any("/pytest/" in name or "/mypy/" in name for name in result)
    assert isinstance(result[f"{HOME}/bin/meshwright"], Text)
