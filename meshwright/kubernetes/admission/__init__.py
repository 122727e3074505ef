"""The validating webhook: policy is judged before a cluster stores it, and kubectl prints the problems.

    review         AdmissionReview: requests and responses as values
    words          problems as lines that kubectl prints
    trial          a second copy of the mesh, in which an object is tried
    turns          one thread for the work of reviews, shared fairly between clients
    judge          a review, judged within its time limit, off the event loop
    place          the address at which the API server reaches the webhook
    roots          the roots of all servers behind one configuration
    configuration  the ValidatingWebhookConfiguration
    registration   the configuration in the cluster, kept right
    server         HTTPS, with a certificate from the mesh's CA

It never changes an object or the mesh. It refuses only objects that cannot be read.
"""
