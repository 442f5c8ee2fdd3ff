"""The controller: the one broker that decides who leads each partition and tells everybody.

Open ``kafka_controller`` first: it elects, fails over, resigns and processes one event after the other. What it knows
is in ``controller_context``; it changes that through ``partition_state_machine`` and ``replica_state_machine`` (which
ask ``election`` who leads), and speaks through ``controller_broker_request_batch`` and ``controller_channel_manager``.
"""
