"""Many runs in search of a finding: ``explore`` many seeds, ``shrink`` a finding, ``replay`` a run, ``scoreboard``."""
