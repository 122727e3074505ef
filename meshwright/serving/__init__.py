"""HTTP servers at the edge: their runner, and a bounded log of malformed requests and failed handlers.

Every HTTP server of ours is made here, so that a client cannot fill a log. The package never knows the
responses of a server.
"""
