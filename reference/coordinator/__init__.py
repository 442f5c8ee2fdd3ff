"""Coordinators: what a broker does for clients that work together. ``group`` has the consumer groups."""
