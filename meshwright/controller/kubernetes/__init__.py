"""Parts of a server in a cluster: the source of objects, the webhook, injection and token reviews.

A server without a cluster never imports the package, except `home`, which works without a library.
"""
