"""Transactions of producers: open ``transaction_coordinator`` first.

* ``transaction_coordinator``   every request about transactions, and the changes of role of the partitions
* ``transaction_metadata``, ``transaction_states``   the transaction of a transactional id, its transitions, its states
* ``transaction_state_manager``   the transactions of this broker, and what is written to the log
* ``transaction_completions``   what follows a decision: markers, then the end of the transaction
* ``transaction_traces``   the events about the partitions of transactions
* ``transaction_records``   the format of the records; ``transaction_loading`` transactions as a log has them
* ``transaction_requests``   what requests contain and what they are answered
"""
