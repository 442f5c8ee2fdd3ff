"""A ZooKeeper ensemble in memory: sessions, ephemerals, watches, versions, multi, sequential znodes, elections.

Every member is a coroutine that one incarnation of a node runs; members, clients and the harness talk over streams of
the loop, so links, kills and pauses do to them what they do to real ones, and all of it also runs on a real loop.

Open ``ensemble`` first, then ``member_process`` (one incarnation of a server) with its ``member`` and the member's
three roles (``looking``, ``following``, ``leading``), ``service`` (what a member does for its clients), ``tree`` (the
znodes) and ``client``.

Limits: no ACLs, quotas, containers, time-to-live, observers, dynamic reconfiguration, read-only servers, snapshots; no
bound on the size of a request.
"""
