"""`python -m benchmarks.inspected_server FOLDER serve ...`: the program as it is, looked into on request.

These modules are of this checkout, the program may be another's: nothing of it is imported before it is run.
"""

import sys
from pathlib import Path

from benchmarks.profiles.census import write_on_signal
from benchmarks.profiles.sampling import sample_on_signal


def main() -> None:
    """Run the program's command; from each SIGUSR1 to the next, it samples itself; at SIGUSR2 it counts."""
    from meshwright.cli.main import app

    sample_on_signal(Path(sys.argv[1]))
    write_on_signal(Path(sys.argv[1]))
    app(sys.argv[2:])


if __name__ == "__main__":
    main()
