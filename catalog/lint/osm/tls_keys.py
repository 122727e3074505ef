"""Problems of TLS settings of a MeshConfig that do not work with the keys of service certificates."""

from collections.abc import Iterator

from catalog.lint.codes import Code
from catalog.lint.wording import problem_of
from catalog.store.view import View
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problem, Severity
from meshwright.mesh.tls_keys import fitting_curves, fitting_suites


def problems(view: View, key: ObjectKey, config: MeshConfig) -> Iterator[Problem]:
    """Yield the lists of cipher suites and curves in a MeshConfig that do not fit the keys of certificates.

    Sidecars add a working entry to such a list.
    """
    sidecar, keys = config.sidecar, view.settings.service_keys
    suites = fitting_suites(sidecar.cipher_suites, keys, sidecar.tls_min_version)
    curves = fitting_curves(sidecar.ecdh_curves, keys, sidecar.tls_max_version)
    for name, kind, lines, used in (
        ("cipherSuites", "cipher suite", sidecar.cipher_suites, suites),
        ("ecdhCurves", "curve", sidecar.ecdh_curves, curves),
    ):
        if used != lines:
            wanted = (
                f"No {kind} in this list works in TLS 1.2 with service certificates, whose keys "
                f"are {keys.value}. Sidecars also use {', '.join(used[len(lines) :])}, because every "
                "call would fail otherwise. Add it to the list, or choose another kind of key with "
                "the setting service_certificate_key."
            )
            field = f"spec.sidecar.{name}"
            yield problem_of(
                view, key, Code.FITS_NO_CERTIFICATE, Severity.WARNING, field, ", ".join(lines), wanted
            )
