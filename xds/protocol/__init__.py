"""The protocol as values: resources, snapshots, subscriptions, and the stream that answers requests.

No asyncio, no gRPC, no clock.
"""
