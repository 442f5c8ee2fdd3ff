"""Many seeds in simulation, each with other faults and another schedule.

* ``exploration``   from a range of seeds to a tally (start here); ``pool`` has the worker processes
* ``seed``          one seed: simulate it, judge it, store the run that shows something
* ``swarm``         each seed enables another subset of the faults
* ``guide``         guided exploration: vary what reached something new; ``features`` says what can be new, ``corpus``
  keeps files, ``plan_changes`` varies a plan
* ``codecs``        one seed with both codecs: the simulator's check of itself
* ``coverage``, ``coverage_counts``   what runs reached, and how often
* ``tally``, ``display``   findings by property and a verdict; what the user sees
* ``mutant_reach``  whether a planted bug was reached and acted
* ``crashes``       what is known of crashed seeds
"""
