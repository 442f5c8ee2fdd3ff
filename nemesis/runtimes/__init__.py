"""Where a cluster runs. ``base`` is the interface that faults and the run see; ``local`` the default."""
