"""Traffic of the last hour, in memory: callers, called services, request rate, latency and success rate.

`statistics` has the values, `cells` and `traffic` keep them and set how often proxies report, and `current`
turns them into rows: per service, edge, route, backend and proxy. `taps` keeps the subscriptions to tapped
requests with the requests that are not read yet.

The package decides nothing, knows no protocol, and loses all data when the process ends.

It never decides anything, outlives the process, or knows a protocol.
"""
