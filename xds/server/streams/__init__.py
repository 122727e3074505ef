"""One stream at the edge: calls, requests in, responses out, and turns of the event loop.

It never decides what a client is to have: a snapshot says it.
"""
