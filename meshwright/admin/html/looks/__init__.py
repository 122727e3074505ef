"""What each page shows of its JSON, and the one sentence about it."""
