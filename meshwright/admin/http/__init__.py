"""The HTTP servers: health and metrics on a thread of their own, debug pages, and the Unix socket.

It never accepts a command that changes the mesh by TCP: such commands need the socket, which is its owner's.
"""
