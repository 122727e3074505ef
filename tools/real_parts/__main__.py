"""Command line: list and build parts, or run a cluster (with or without a node) until interrupted."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import tools.real_parts
from tools.real_parts.building import PartError, build, chosen_kubernetes, is_built
from tools.real_parts.cluster import RunningCluster, cluster
from tools.real_parts.node import node
from tools.real_parts.parts import PARTS


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.real_parts",
        description=tools.real_parts.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list", help="list the parts with their versions")
    building = verbs.add_parser("build", help="build parts that are missing or have another version")
    building.add_argument("parts", nargs="+", choices=list(PARTS), metavar="PART", help=", ".join(PARTS))
    running = verbs.add_parser("cluster", help="run a Kubernetes API until interrupted")
    running.add_argument("--controlled", action="store_true", help="with controllers and an audit log")
    real = verbs.add_parser(
        "node", help="run a cluster with Pods in a network of its own (needs root and Debian's programs)"
    )
    for argument_parser in (running, real):
        argument_parser.add_argument("folder", type=Path, help="new folder for the cluster")
    return parser.parse_args(argv)


def main() -> None:
    """Build or run real parts as the command line demands; a failure ends with one line and exit status 1."""
    options = arguments()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        match options.verb:
            case "list":
                kubernetes = chosen_kubernetes()
                for part in map(kubernetes.own, PARTS.values()):
                    print(f"{part.name} {part.version}{'' if is_built(part) else ' (not built)'}")
            case "build":
                kubernetes = chosen_kubernetes()
                for name in options.parts:
                    print(build(kubernetes.own(PARTS[name])))
            case "node":
                with node(options.folder.resolve()) as made:
                    _serve(made.cluster)
            case _:
                with cluster(options.folder.resolve(), controlled=options.controlled) as bare:
                    _serve(bare)
    except PartError as error:
        sys.exit(f"{error}")


def _serve(made: RunningCluster) -> None:
    """Print the address of the started cluster, and wait for an interrupt."""
    print(f"serving at {made.server}; export KUBECONFIG={made.kubeconfig}", flush=True)
    if made.enter:
        print(f"commands in its network: {' '.join(made.enter)} COMMAND", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


if __name__ == "__main__":
    main()
