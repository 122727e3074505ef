"""The command line: list, build, and run a cluster until interrupted."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import tools.real_parts
from tools.real_parts.building import PartError, build, is_built
from tools.real_parts.cluster import cluster
from tools.real_parts.parts import PARTS


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.real_parts",
        description=tools.real_parts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="the parts and their versions")
    building = verbs.add_parser("build", help="build parts that are not there in their version")
    building.add_argument("parts", nargs="+", choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    running = verbs.add_parser("cluster", help="run a Kubernetes API until interrupted")
    running.add_argument("folder", type=Path, help="a folder that is not there yet")
    running.add_argument("--controlled", action="store_true", help="with the controllers, and an audit log")
    return parser.parse_args(argv)


def main() -> None:
    """Do what is asked; a part that fails is one line and an exit code."""
    told = arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        match told.verb:
            case "list":
                for part in PARTS.values():
                    print(f"{part.name} {part.version}{'' if is_built(part) else ' (not built)'}")
            case "build":
                for name in told.parts:
                    print(build(PARTS[name]))
            case _:
                with (
                    cluster(told.folder, controlled=told.controlled) as made,
                    contextlib.suppress(KeyboardInterrupt),
                ):
                    print(f"serving at {made.server}; export KUBECONFIG={made.kubeconfig.resolve()}")
                    signal.pause()
    except PartError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
