"""Signatures of a release, made and verified by `ssh-keygen` of OpenSSH (8.1 or newer).

OpenSSH is on nearly every machine of developers and operators, works without the internet, keeps keys in
files, in an agent or on a security key, and git signs commits and tags with the same keys. GnuPG would need a
keyring, cosign a transparency log or a download, and minisign an uncommon package.

Only ssh-keygen reads the key. This program has the path alone, so that no message can have the key.
"""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.release.artifacts import SIGNATURE

NAMESPACE: Final = "meshwright-release"
"""Purpose of the signatures. A signature for git or mail, by the same key, does not fit a release."""
VARIABLE: Final = "SIGNING_KEY"
_SECONDS: Final = 300
"""Bound on one run; a person may have to type a passphrase or to touch a security key."""


class SigningError(Exception):
    """Error for an unusable key; the message names the variable and the path, never the content."""


def fingerprint(key: Path) -> str:
    """Return the fingerprint of a key, for example `SHA256:5UyN...`. Raises SigningError.

    `key` is a private key, or the public key of a private key in ssh-agent.
    """
    if not key.is_file():
        raise _error(key, "is not a file")
    words = _keygen(key, ["-l", "-f", str(key)]).split()
    return words[1]


def sign(files: Mapping[str, bytes], key: Path, scratch: Path) -> dict[str, bytes]:
    """Return a verified signature of each file, by the signature's name such as `SHA256SUMS.sig`.

    ssh-keygen asks for a passphrase at the terminal, once for all files. `scratch` is an empty folder. Raises
    SigningError.
    """
    paths = [scratch / name for name in files]
    for path in paths:
        path.write_bytes(files[path.name])
    _keygen(key, ["-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, *map(str, paths)])
    for path in paths:
        words = ["-Y", "check-novalidate", "-n", NAMESPACE, "-s", f"{path}{SIGNATURE}"]
        _keygen(key, words, path.read_bytes())
    return {f"{path.name}{SIGNATURE}": Path(f"{path}{SIGNATURE}").read_bytes() for path in paths}


def _keygen(key: Path, words: Sequence[str], content: bytes = b"") -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *words], input=content, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        raise _error(
            key, "cannot sign, because ssh-keygen is not installed (Debian: openssh-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise _error(key, f"cannot sign, because ssh-keygen did not end within {_SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        reason = " ".join(" ".join(line.strip("@ \r") for line in lines).split()).rstrip(".")
        raise _error(key, f"cannot sign: ssh-keygen: {reason}")
    return done.stdout.decode("utf-8", "replace")


def _error(key: Path, reason: str) -> SigningError:
    return SigningError(
        f"{VARIABLE}: {key} {reason}. Name a private key in OpenSSH's format, made for example with"
        " `ssh-keygen -t ed25519 -f FILE`, or the .pub file of a key in ssh-agent"
    )
