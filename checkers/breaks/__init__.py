"""The smallest histories that break each property, in each way: start with ``controllers``.

* ``controllers``, ``leaders``, ``replicas``, ``clients``, ``ends``   one module per family of properties
* ``events``, ``administration``   builders of events

``Property.breaks`` names the histories, the smallest first. Tests judge them; ``docs/findings.md`` shows the findings.
"""
