"""A disk of its own for each broker: an ext4 file system in an image, behind a loop device. Linux, root.

``loop`` makes block devices of files, ``ext4`` mounts and shuts down file systems, ``disk`` joins them and is where to
begin; ``obstacle`` says what is missing on a machine that cannot have any.

The engine mounts the device itself, as the volume that holds the broker's logs, whenever the container starts. The
harness holds a mount of its own that has no place in any mount namespace, only a file descriptor: it reaches the files
whether or not the broker lives, the page cache of a killed broker stays, and nothing is left of it when the harness is
gone. What a dead harness does leave are loop devices; they are found by the name of their image, which is the run's.

Rejected: mounting on the host and binding the directory into the container, because every such mount has to be found
and undone when a harness was killed, and a container that lives keeps it busy; device-mapper's ``error`` and ``flakey``
targets, because many kernels lack them, and the shutdown call does the same.
"""
