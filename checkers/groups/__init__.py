"""Consumer groups: what members were promised by the coordinators of their groups.

* ``check``              the check, and its four properties with their specifications (start here)
* ``progress``           what members have read below the offsets that they commit: a check and a property of its own
* ``rebalances``         whether rebalances end in time: a check and a property of its own; ``rebalance_bounds`` finds
  what took too long, ``rebalance_durations`` measures how long it took
* ``membership``         whether members stay in their groups: a check and a property of its own
* ``group_operations``   operations of members and what they own, read from the events of one history
* ``acknowledged``       what a coordinator has certainly taken in: the acknowledged commits before and the broker's own
* ``loads``              when brokers may have loaded their groups again
* ``ownership``, ``fencing``, ``committed``   the judges, one for each promise or two
"""
