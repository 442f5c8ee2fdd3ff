"""Kafka's wire format. Open ``codec`` first.

* ``codec``         frames to kio's messages and back
* ``decoding``      the reader that ``codec`` uses: every length is checked before it is believed
* ``encoding``      the writer that ``codec`` uses
* ``schema``        what kio knows of a message class; building messages of any version
* ``versions``      the APIs and versions that a broker offers
* ``record_batch``  the header of a record batch; ``records`` reads the records inside, ``compression`` the codecs
* ``control_records``   the markers that end transactions
* ``errors``        what can be wrong with bytes from the network
"""
