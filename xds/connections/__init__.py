"""Connections of clients: which exist, how much each may cost, and how to end one.

A client can cost the server something without any call, for example by leaving thousands of handshakes open.
gRPC lacks an interface to list or end connections. Therefore `sockets` finds the sockets of the listening
port in /proc and can end one, `table` decides which connections exceed the limits (pure values, time as an
argument), and `guard` connects both to gRPC: the guard counts the calls on each connection and looks at the
sockets about once a second.

The package never reads a request.
"""
