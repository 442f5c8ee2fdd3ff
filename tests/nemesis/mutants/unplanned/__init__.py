"""Twelve bugs that were planted when the properties were finished, to count how many are found (mutation-score.md).

Each file is for ``--mutant``; its name says what is wrong.
"""
