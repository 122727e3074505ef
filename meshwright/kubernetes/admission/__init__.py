"""The validating webhook: it reviews policy before a cluster stores it, and kubectl prints the problems.

    review         AdmissionReview: requests and responses as values
    words          problems as lines that kubectl prints
    trial          a second copy of the mesh, in which an object is tried
    turns          one thread for the work of reviews, shared fairly between clients
    judge          the verdict on a review, within its time limit, off the event loop
    place          the address at which the API server reaches the webhook
    roots          the root certificates of all servers behind one configuration
    configuration  the ValidatingWebhookConfiguration
    registration   the configuration in the cluster, kept up to date
    server         HTTPS, with a certificate from the mesh's CA

A user who applies a wrong manifest sees the problems at once, for example an unknown destination. The webhook
never changes an object or the mesh. It refuses only objects with errors in the object itself; all other
problems are warnings. When the webhook fails or is late, the API server stores the object unreviewed.

Read next: `judge`, which uses most other modules.
"""
