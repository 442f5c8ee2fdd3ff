"""The controller: the one broker that decides who leads each partition and tells everybody.

Open ``kafka_controller`` first: it holds the office (elected, deposed, expired) and takes one event after the other
from ``controller_event_manager``. ``controller_components`` begins and ends a term and gives each event to the part
that it is for: ``cluster_changes``, ``broker_modifications``, ``log_dir_failures``, ``topic_changes``,
``topic_deletion_manager``, ``partition_reassignments`` (with ``reassignment_phases``), ``replica_leader_elections``
(also for ``auto_leader_rebalance``), ``controlled_shutdowns``, ``isr_changes``, ``isr_change_notifications``,
``producer_id_allocations``.

What they know is in ``controller_context``; they change it through ``partition_state_machine`` and
``replica_state_machine`` (which ask ``leader_elections`` and ``election`` who leads), and speak through
``controller_broker_request_batch`` and ``controller_channel_manager``; what brokers answer becomes events again in
``response_events``. ``docs/controller.md`` has a diagram.
"""
