"""The wall clock of a node that shares a machine with others: moved and made to drift, live, by a preloaded library.

* ``wall_clocks``   sets a node's clock and reads it back; start here
* ``control_page``  the file through which the library is told
* ``probe``         what a clock says, asked of a process that has it
* ``library``       the library, compiled when it is first needed
* ``wall_clock.c``  the library itself: what it answers, and what it does not reach

The harness never runs under the library, and the library leaves every clock but the wall clock alone: histories are
timed by the monotonic one.
"""
