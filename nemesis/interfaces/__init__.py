"""What a runtime offers to faults and to the rest of the harness. Implementations are in ``nemesis.runtimes``.

``runtime`` composes a runtime of a cluster, its lifecycle and six parts; start there. One module per part:
``network``, ``processes``, ``disks``, ``clocks``, ``ensemble``, ``packets``. A part that a runtime lacks is
``Unsupported`` (``unsupported``); an optional feature of a part is a smaller part below it. ``cluster`` and
``lifecycle`` exist everywhere; the workload offers ``clients``. ``links`` and ``impairment`` are the values that the
parts exchange; ``errors`` has what they raise.
"""
