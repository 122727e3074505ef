"""What the fields mean, kind by kind: one table for whom a kind is from."""
