"""What a server needs of a cluster: its source of objects, webhook, injection and token reviews.

A server without a cluster never imports it, but for `home`, which needs no library.
"""
