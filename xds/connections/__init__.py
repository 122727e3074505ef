"""The connections of clients: which there are, what they may cost, and how one is ended."""
