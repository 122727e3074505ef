"""`meshwright certs seal` and `unseal`: the private keys of a state directory, encrypted or not."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.options import AsJson, Shared, State
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json

Passphrase = Annotated[
    Path | None,
    typer.Option(
        envvar="MESHWRIGHT_KEY_PASSPHRASE_FILE",
        help="File with the passphrase, as the server has it.",
        show_default=False,
    ),
]


def seal(
    state: State,
    key_passphrase_file: Passphrase = None,
    new_passphrase_file: Annotated[
        Path | None, typer.Option(help="File with the passphrase that takes its place.")
    ] = None,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    """Encrypt the private keys of a state directory, or change their passphrase; no server may run.

    A server that has the setting key_passphrase_file does the first by itself, at its start.
    """
    from meshwright.cli.identities.sealing import sealed

    sealed(state, key_passphrase_file, new_passphrase_file, shared=shared)
    changed = new_passphrase_file is not None
    if as_json:
        print_json({"sealed": True, "passphrase_changed": changed})
        return
    print_lines(f"the private keys in {state} are encrypted{' by the new passphrase' if changed else ''}")
    print_lines("the server needs key_passphrase_file from now on")


def unseal(
    state: State, key_passphrase_file: Passphrase = None, shared: Shared = False, as_json: AsJson = False
) -> None:
    """Have the private keys of a state directory encrypted no more; no server may run."""
    from meshwright.cli.identities.sealing import unsealed

    count = unsealed(state, key_passphrase_file, shared=shared)
    if as_json:
        print_json({"sealed": False, "files": count})
        return
    print_lines(
        f"{count} files with private keys are decrypted: start the server without key_passphrase_file"
    )
