"""Recovery of records that a store has lost, after a restored snapshot or a deletion by hand.

- `domain`: rules of one part of the program about its records: which missing records count as lost.
- `known_records`: the followed records of this server, and the decision which of them the store has lost.
- `healer`: the writer of lost records.
- `store`: a RecordStore around another one, which writes lost records again, and starts without the store.
- `local_copy`: the contract of a place in which followed records survive a restart.

Each server writes lost records again, so a record survives if at least one running server has followed the
record. Two servers may do this at once, because the store compares each write with the present revision. The
package never overwrites an unreadable record, which may be of a newer version.
"""
