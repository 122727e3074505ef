"""A program with gRPC's own xDS client: for each input line it calls `xds:///<line>` and prints the answer.

Its configuration is in the file of GRPC_XDS_BOOTSTRAP, which a process reads only once, so it must be a
program.
"""

import sys

import grpc


def main() -> None:
    """Call until standard input ends."""
    channels: dict[str, grpc.Channel] = {}
    for line in sys.stdin:
        target = line.strip()
        if target not in channels:
            channels[target] = grpc.insecure_channel(f"xds:///{target}")
        try:
            answer = channels[target].unary_unary("/demo.Who/Ask")(b"who", timeout=20).decode()
        except grpc.RpcError as error:
            answer = f"{error.code().name}: {error.details()}".replace("\n", " ")
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
