"""How properties are checked, apart from what they promise: start with ``fold`` (the shapes of a check).

``segment`` is what a check sees, ``engine`` runs checks on Spark or in process, ``model`` has verdicts and findings,
``columns`` and ``arrays`` the vectors behind a segment, ``compiled`` the kernels that numba compiles.
"""
