"""HTTP servers at the edge: what a server logs of clients that send malformed requests, and how often.

Every HTTP server of ours is made here, so that a stranger cannot fill a log. This package will never know
what a server answers.
"""
