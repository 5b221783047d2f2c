"""Retrieval: understand a query, gather candidates from both channels, rank them."""
