"""Calls and streams at the edge: requests in, responses out, and turns of the event loop.

A `Call` is one RPC of any method, with its cost and its end. A `Conversation` connects a discovery call to
the state machine of `xds.protocol`. `Decoder` and `Encoder` share work between streams: thousands of streams
send the same ACK and receive the same response. `MessageWriter` and `WakeQueue` keep the cost of a push low
on the event loop. This package never decides the configuration of a client; a snapshot does.
"""
