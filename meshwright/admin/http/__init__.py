"""HTTP servers: health and metrics in their own thread, debug pages over TCP, and the Unix socket.

Probes must answer while the event loop is blocked, so `health` has a thread with another event loop. The
debug server over TCP only reads: `guard` refuses unknown hosts against DNS rebinding. Every command, for
example `meshwright certs revoke`, uses the Unix socket in the state directory, which only the owner can open.
`commands`, `tokens`, `roots`, `rebuilding` and `log_levels` are the handlers there, `commands_guard` refuses
requests of web pages, and `audit` logs each action with the user.

The package never accepts a command over TCP that changes the mesh.
"""
