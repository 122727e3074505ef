"""`python -m benchmarks.serving FOLDER serve ...`: the program as it is, and profiles of it on request."""

import sys
from pathlib import Path

from benchmarks.sampling import sample_on_signal
from cli.main import app


def main() -> None:
    """Run the program's command; from each SIGUSR1 to the next, it samples itself."""
    sample_on_signal(Path(sys.argv[1]))
    app(sys.argv[2:])


if __name__ == "__main__":
    main()
