"""Traffic of the last hour, in memory: callers, called services, request rate, latency and success rate.

`statistics` has the values, `cells` and `traffic` keep them and set how often proxies report, and `current`
turns them into rows: per service, edge, route, backend and proxy. `taps` keeps the subscriptions to tapped
requests with the unread requests.

All data is in memory only, and lost when the process ends.

The package never decides anything, or knows a protocol.
"""
