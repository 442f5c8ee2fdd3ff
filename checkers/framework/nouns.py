"""The noun behind a count: one read, two reads."""

from __future__ import annotations


def noun_for(count: int, plural: str) -> str:
    """Return the noun, with what is said of it, in the number that a count needs.

    The noun is the first word of ``plural`` that ends in s: ``sends`` in ``acknowledged sends of members``. Several
    nouns (``sends and polls``), or a noun with a comma behind it, have no singular: they are put in parentheses.
    """
    if count != 1:
        return plural
    words = plural.split(" ")
    if "and" in words or "," in plural:
        return f"({plural})"
    noun = next((number for number, word in enumerate(words) if word.endswith("s")), 0)
    words[noun] = _singular(words[noun])
    return " ".join(words)


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun.removesuffix("ies") + "y"
    if noun.endswith(("ches", "shes", "sses", "xes")):
        return noun.removesuffix("es")
    return noun.removesuffix("s")
