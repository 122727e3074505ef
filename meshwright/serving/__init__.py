"""HTTP servers at the edge: their runner, and a bounded log of malformed requests and failed handlers.

Every HTTP server of Meshwright is created with `runners.runner`. aiohttp logs a traceback for each request
that it cannot parse, so every client that reaches a port could fill the disk with logs.
- `runners`: creates the runner of an application. Start here.
- `request_errors`: the logger that replaces aiohttp's.
- `repeats`, `repeated_lines`: one line at once for the first event of a kind, then one count per period.
The package never knows the responses of a server.
"""
