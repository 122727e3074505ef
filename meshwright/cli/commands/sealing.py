"""`meshwright certs seal` and `unseal`: encrypt or decrypt the private keys of a state directory."""

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
        help="File with the passphrase, as in the server's setting key_passphrase_file.",
        show_default=False,
    ),
]


def seal(
    state: State,
    key_passphrase_file: Passphrase = None,
    new_passphrase_file: Annotated[
        Path | None, typer.Option(help="File with a new passphrase, to replace the current one.")
    ] = None,
    shared: Shared = False,
    as_json: AsJson = False,
) -> None:
    r"""Encrypt the private keys in a state directory, or change the passphrase.

    Stop the server first. A server with the setting key_passphrase_file encrypts
    the keys by itself when it starts. For example, change the passphrase:

      meshwright certs seal --state /var/lib/meshwright \
          --key-passphrase-file old.txt --new-passphrase-file new.txt
    """
    from meshwright.cli.identities.sealing import sealed

    sealed(state, key_passphrase_file, new_passphrase_file, shared=shared)
    changed = new_passphrase_file is not None
    if as_json:
        print_json({"sealed": True, "passphrase_changed": changed})
        return
    print_lines(f"the private keys in {state} are encrypted{' with the new passphrase' if changed else ''}")
    print_lines("start the server with key_passphrase_file from now on")


def unseal(
    state: State, key_passphrase_file: Passphrase = None, shared: Shared = False, as_json: AsJson = False
) -> None:
    """Decrypt the private keys in a state directory.

    Stop the server first, and start it again without key_passphrase_file.
    """
    from meshwright.cli.identities.sealing import unsealed

    count = unsealed(state, key_passphrase_file, shared=shared)
    if as_json:
        print_json({"sealed": False, "files": count})
        return
    print_lines(
        f"{count} files with private keys are decrypted: start the server without key_passphrase_file"
    )
