"""HTTP servers at the edge: their runner, and a bounded log of malformed requests and failed handlers.

Every HTTP server of Meshwright is created with `runners.runner`. aiohttp logs a traceback for each malformed
request, so any client could fill the disk with logs. For example, a port scanner sends TLS to a plain port.

- `runners`: creates the runner of an application. Start here.
- `request_errors`: the logger in place of aiohttp's.
- `repeats`, `repeated_lines`: one line at once for the first event of a kind, then one count per period.

The package never knows the responses of a server.
"""
