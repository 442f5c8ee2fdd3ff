"""Histories made to measure: any size, any number of partitions, one hot partition, anomalies at known places.

They are made of arrays, never event by event (but for the few events of the control plane), and written as Parquet
directly, a stretch of records at a time, so that memory stays bounded. Seeded: the same arguments give the same rows.

* ``shape``      what is wanted, as arithmetic: partitions, records, leader epochs, times (start here)
* ``columns``    numpy arrays → tables of the history's schema
* ``writer``     tables → row groups, files and manifest
* ``control``    ZooKeeper, controllers, elections: the few events, as events
* ``brokers``    appends, high watermarks, acknowledgements: the many, as arrays
* ``clients``    sends, polls and final reads, as arrays
* ``anomalies``  what may be put wrong, and the property that must name it
* ``client_anomalies``  the same, of what clients record
* ``transactions``  histories of transactions over lists or registers
* ``registers``  histories of registers, which have nothing to do with brokers
* ``jepsen``     histories of other systems, as files of EDN; made operation by operation
* ``generate``   puts it all together: into a directory, or into memory
"""
