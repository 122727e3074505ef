"""Which pods get a sidecar, and with what: decided, configured, and done to manifests.

    configuration  how it is configured, read and checked as a whole
    selectors      label selectors; overlays: what is laid over a sidecar
    decision       whether a pod gets one, and why; explaining: the same, for people
    injecting      a pod in, the patched pod out (`meshwright.sidecars.injection` makes it); shapes: whether
    it is a pod manifests      the same for what makes pods, in files; namespaces: one as far as this asks
    reviewing      what an API server asks, and is answered: a JSON patch
    registration   the MutatingWebhookConfiguration, as it should be
    pod_roots      the ConfigMap by which a pod believes the control plane, and where it is to be
    pod_secrets    the Secret of a pod that does not join by its token, and what becomes of it
    server         the path at which API servers ask; lookup: what it asks them in turn
    keeper         that ConfigMap made, watched and mended; secret_keeper: those Secrets

All but `server`, `lookup` and the two keepers are functions of values. Nothing here reads a file, or decides
what a sidecar is allowed to do.
"""
