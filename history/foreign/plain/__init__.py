"""Histories in the common form, read by compiled code: the same events as any other file's, ten times as fast.

* ``histories``  a text becomes a history, or it is not plain (start here)
* ``texts``      a file is divided into chunks of whole lines; ``reading``: threads read them
* ``scanning``   the kernels that read lines; ``pairing`` those that say which line ends which operation
* ``times``      the times of lines that are in order
* ``columns``    how lines stand in memory
* ``compiled``   compiles the kernels
* ``events``     writes the events
"""
