"""One run, from a checked request to a recorded history: start with ``run``.

``preflight`` checks the request before anything starts, ``launch`` starts it, ``run_directories`` makes its directory.
``mutant_choice`` is about the planted bug that a run carries.
``timeout_settings`` and ``background_settings`` state the configuration that checks need.
``lateness`` records how late the run itself is.
``offset_samples`` records what replicas answer during a run, ``convergence``, ``end_state`` and ``offsets_at_rest`` how
the cluster ends.
``clean`` undoes what an interrupted run left behind.
"""
