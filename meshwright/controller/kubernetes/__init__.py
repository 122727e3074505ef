"""What a server needs of a cluster: its source of objects, webhook, injection and token reviews.

It is never imported by a server that runs without a cluster.
"""
