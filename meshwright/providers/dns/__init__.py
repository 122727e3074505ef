"""The DNS as a source of endpoints: queries, their schedule, the answers in force, and a file for restarts.

It never removes the last endpoints of a service because a query failed.
"""
