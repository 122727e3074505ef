"""The DNS as a source of endpoints: queries, their schedule, the answers in force, and a file for restarts.

A failed query never removes the last endpoints of a service. `source` runs the queries, `book` has the state
without input or output, `schedule` decides when to repeat a query, and `slices` makes EndpointSlices from
answers.
"""
