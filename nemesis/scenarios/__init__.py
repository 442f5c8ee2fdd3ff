"""Scenarios: ``scenario`` states what a scenario file may contain; our own scenarios are the YAML files beside it."""
