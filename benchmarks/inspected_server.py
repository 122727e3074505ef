"""Command `python -m benchmarks.inspected_server FOLDER serve ...`: the server with a profiler and a census.

The profiler's modules belong to this checkout, but the server may belong to another one. So nothing of the
server is imported before it runs.
"""

import sys
from pathlib import Path

from benchmarks.profiles.census import write_on_signal
from benchmarks.profiles.sampling import sample_on_signal


def main() -> None:
    """Run the server's command. SIGUSR1 starts and stops the profiler; SIGUSR2 writes a census of objects."""
    from meshwright.cli.main import app

    sample_on_signal(Path(sys.argv[1]))
    write_on_signal(Path(sys.argv[1]))
    app(sys.argv[2:])


if __name__ == "__main__":
    main()
