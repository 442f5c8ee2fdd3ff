"""The smallest histories that break each property, in each way: start with ``controllers``.

* ``controllers``, ``leaders``, ``replicas``, ``clients``, ``groups``, ``ends``,
  ``markers``, ``hanging``, ``epochs_kept``, ``transactions_at_rest``   one module per family
  of properties of our runs
* ``office``, ``vacancies``, ``broker_failures``, ``metadata``, ``elections_answered``, ``own_logs``, ``min_isr``,
  ``group_progress``, ``rebalances``, ``membership``   one for a property
* ``late_recovery``, ``isr_joins``, ``isr_epochs``, ``isr_shrinks``, ``client_offsets``, ``control_effects``,
  ``notifications``   one for a property
* ``offsets_at_rest``, ``leader_balance``, ``log_dir_failures``, ``settings_in_force``, ``retention``,
  ``hw_sampled``, ``epoch_ends``, ``quorum``, ``log_files``, ``compaction``, ``checkpoints``, ``times_answered``,
  ``jobs``, ``requests_answered``, ``log_dir_moves``, ``segment_deletions``, ``isr_commits``, ``tombstones``,
  ``leader_epochs_fenced``, ``fetches_answered``, ``clean_stops``   one for a property, or for two
* ``transactions_read``   for the properties of transactional producers
* ``objects``, ``totals``, ``cycles``, ``forks``, ``logs``   one for each family of properties of other systems
* ``events``, ``administration``   builders of the events of our runs
* ``operations``, ``transactions``, ``log_operations``   builders of the events of other systems

``Property.breaks`` names the histories, the smallest first. Tests judge them; ``docs/findings.md`` shows the findings.
"""
