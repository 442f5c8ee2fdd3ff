"""The broker as a server: open ``kafka_server`` first, then ``kafka_apis`` and ``replica_manager``.

* ``kafka_server``   start, stop; ``controlled_shutdown`` the way out
* ``broker_metadata_checkpoint``, ``broker_id_generation``   who this broker is
* ``kafka_apis``, ``connection``; package ``apis``   which request goes where, and what it is answered
* ``replica_manager``   the hosted partitions and the control requests; its parts are ``hosted_partitions``,
  ``replica_roles``, ``replica_fetching``, ``storage_failures``, ``record_appends``, ``record_fetches``,
  ``offset_lookups``, ``record_deletions``; ``control_traces`` records the answers to control requests
* ``transaction_marker_channel_manager``   markers on their way to the leaders of partitions
* ``transaction_verifications``, ``add_partitions_to_txn_manager``   asked before a transaction opens in a log
* ``inter_broker_senders``   one queue and one request under way for each broker that these two send to
* ``coordinator_replicas``, ``coordinator_roles``   the replicas and roles of this broker as its coordinators know them
* ``kafka_request_handler``   the tasks that take requests from the queue
* ``abstract_fetcher_manager``, ``replica_fetcher_manager``, ``replica_fetcher_thread``,
  ``remote_leader_end_point``   following leaders;
  ``partition_fetch_state``, ``offset_truncation``, ``fetch_session_handler``   what that needs
* ``fetch_manager``, ``fetch_session``   what a client has asked for and was told before; ``replica_selector``   whom it
  should ask instead
* ``replica_alter_log_dirs_manager``, ``replica_alter_log_dirs_thread``   replicas that move between log directories
* ``client_quota_manager``   how much a client may send and read; ``zk_producer_id_manager`` producer ids
* ``alter_partition_manager``, ``zk_alter_partition_manager``   how a leader changes its ISR: it asks, or writes
* ``delayed_produce``, ``delayed_fetch``, ``delayed_elect_leader``, ``delayed_delete_records``   answers that wait
* ``metadata_cache``   what controllers have told of the cluster
* ``zk_admin_manager``, ``admin_utils``, ``rack_aware_assignment``, ``auto_topic_creation_manager``   new topics
* ``config_admin_manager``, ``config_helper``   settings told and changed; ``zk_config_manager``, ``config_handlers``,
  ``dynamic_broker_config``   and how every broker hears of it
"""
