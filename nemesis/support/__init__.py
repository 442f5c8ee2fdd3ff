"""What every part of the harness may use, and what knows none of them: errors, paths, interrupts, the undo journal.

Start with ``errors``: the exit codes, and which exception leads to which.
"""
