"""The disks of brokers that share a machine: full, failing or without power, each for itself, without root.

The launcher (``nemesis.runtimes.reference_launcher``) gives a broker process a disk that fails on command and writes
down what is not synced. The reference knows nothing of it: it is given a ``Disk`` as always.

* ``local_disks``   what can happen to the disks of a run, and what a probe of them then meets; start here
* ``faulty_disk``   the ``Disk`` in the broker's process
* ``commands``        the files through which it is told, and tells how many calls it has refused
* ``unsynced``      which bytes have not been synced, written down so that they can be taken after the broker's death
"""
