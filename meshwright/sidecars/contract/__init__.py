"""What a sidecar driver is: what it is given, what it answers, how it begins and ends."""
