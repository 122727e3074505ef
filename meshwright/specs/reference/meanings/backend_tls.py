"""Meanings of the fields of BackendTLSPolicies."""

from typing import Final

from meshwright.specs.gateway import forms
from meshwright.specs.reference.meaning import Meaning, Meanings
from meshwright.specs.reference.meanings.gateway import GROUP, HOSTNAME, KIND, NAME, SECTION, form_of

_PRECISE: Final = form_of("DNS name without `*`", forms.PRECISE_HOSTNAME)
_URI: Final = form_of("URI", forms.URI)
_WELL_KNOWN: Final = form_of("`System` or another name", forms.WELL_KNOWN)

BACKEND_TLS_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("The age; of two policies for one target, the older one decides."),
    "metadata.generation": Meaning("The number of changes; the status repeats it."),
    "spec": Meaning("The targets, and the check of their certificates."),
    "spec.targetRefs": Meaning("The Services whose endpoints speak TLS, 1 to 16."),
    "spec.targetRefs[].group": Meaning("The API group; empty for a Service.", form=GROUP),
    "spec.targetRefs[].kind": Meaning("The kind; the policy takes effect for a Service alone.", form=KIND),
    "spec.targetRefs[].name": Meaning("The name, in the namespace of the policy.", form=NAME),
    "spec.targetRefs[].sectionName": Meaning("The name of a port.", "all ports", SECTION),
    "spec.validation": Meaning("The check of the endpoints' certificates."),
    "spec.validation.hostname": Meaning(
        "The requested server name, which the certificate must have unless `subjectAltNames` are given.",
        form=_PRECISE,
    ),
    "spec.validation.caCertificateRefs": Meaning("The ConfigMaps with CA certificates, at most 8.", "none"),
    "spec.validation.caCertificateRefs[].group": Meaning("The API group; empty for a ConfigMap.", form=GROUP),
    "spec.validation.caCertificateRefs[].kind": Meaning("The kind; it must be `ConfigMap`.", form=KIND),
    "spec.validation.caCertificateRefs[].name": Meaning("The name.", form=NAME),
    "spec.validation.wellKnownCACertificates": Meaning(
        "`System` for the CA certificates of the proxy's machine or image.", "none", _WELL_KNOWN
    ),
    "spec.validation.subjectAltNames": Meaning(
        "Names of which the certificate must have one, at most 5.", "`hostname` alone"
    ),
    "spec.validation.subjectAltNames[].type": Meaning("The type of the name."),
    "spec.validation.subjectAltNames[].hostname": Meaning("The DNS name, for `Hostname`.", form=HOSTNAME),
    "spec.validation.subjectAltNames[].uri": Meaning("The URI, for `URI`.", form=_URI),
    "spec.options": Meaning("Options of other controllers. Ignored."),
}
