"""Endpoints found in the DNS: what is asked when, what is believed of it, what outlives a restart."""
