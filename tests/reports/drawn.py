"""Reading the paths of charts back."""

from __future__ import annotations

import re


def lines(path: str) -> list[list[tuple[int, int]]]:
    """Return the corners of each piece of a path, in the order in which they are drawn."""
    pieces: list[list[tuple[int, int]]] = []
    for command, first, second in re.findall(r"([MLhv])(-?\d+)(?: (-?\d+))?", path):
        if command == "M":
            pieces.append([(int(first), int(second))])
            continue
        x, y = pieces[-1][-1]
        match command:
            case "L":
                pieces[-1].append((int(first), int(second)))
            case "h":
                pieces[-1].append((x + int(first), y))
            case _:
                pieces[-1].append((x, y + int(first)))
    return pieces
