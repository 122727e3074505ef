"""Parts of a server in a cluster: the source of objects, the webhook, injection and token reviews.

A server without a cluster never imports it, except `home`, which needs no library.
"""
