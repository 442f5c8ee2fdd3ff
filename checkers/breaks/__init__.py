"""The smallest histories that break each property, in each way: start with ``controllers``.

``events`` and ``administration`` build the events. The other modules hold the histories of one family of properties,
the smallest first; ``Property.breaks`` names them. Tests judge them, and ``docs/findings.md`` shows what is found.
"""
