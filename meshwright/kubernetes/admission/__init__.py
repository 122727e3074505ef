"""The validating webhook: policy is judged before a cluster takes it, and its owner told at once.

    review        what an API server asks, and what it is answered: AdmissionReview, values in and out
    words         problems as lines that kubectl prints: why an object is refused, and what to look at
    trial         the mesh a second time, to see what an object would come to
    turns         one thread for the work of reviews, in which clients take turns
    judging       a review judged within its time, off the event loop
    place         where the API server reaches it
    roots         whose roots API servers trust: those of all servers behind one configuration
    registration  the ValidatingWebhookConfiguration, made and kept right
    server        HTTPS, with a certificate from the mesh's CA

Nothing here changes an object, or the mesh. It refuses what cannot be read, and nothing else.
"""
