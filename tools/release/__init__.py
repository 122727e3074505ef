"""Build of a release: `make release` makes every file that users download, into `dist/`.

    source       the commit: all tracked files and the time; a dirty tree is refused
    versions     the places of the version, and which of them disagree
    artifacts    the files of a release: names and order
    archives     tar archives whose bytes depend on nothing but the files and the time
    chart        the chart in the form of `helm package`
    contexts     a build context per image: the Dockerfile's stages, and their files
    bill         the bill of materials (CycloneDX) of the wheel's locked requirements
    provenance   the statement from which commit and with which tools the files were built
    checksums    SHA256SUMS, in the form of `sha256sum -c`
    wheels       sdist and wheel, built and checked by other programs
    signatures   signatures by `ssh-keygen`

Two builds of one commit are equal byte for byte, at any path, umask, time and locale. Therefore all files
come from the commit and never from the working tree, every time is the commit's, and identifiers are derived
from content. The compressed bytes also depend on Python's zlib, whose version is in the provenance.

Only `source`, `wheels`, `signatures` and the command itself touch files and processes; the other modules map
values to values. The package never uploads a file.
"""
