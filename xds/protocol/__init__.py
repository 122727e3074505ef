"""The xDS protocol as values: resources, snapshots, subscriptions, and the state machine of a stream.

A stream (`stream`, with its variants `sotw` and `delta`) takes requests and snapshots and returns the
responses to send. It has one `Channel` (`type_state`) for each resource type, with the client's subscription
(`subscription`), the held versions, and the rejection in force (`blame`). `wire` translates between bytes and
these values.

The package never uses asyncio, gRPC or a clock, so each rule of docs/understand/xds-rules.md is tested as a
function of values. Rule numbers, for example `W4`, are cited at the implementing lines. Read
`xds.protocol.stream` next.
"""
