"""A follower's side of a fetch session: full after any trouble, and otherwise only what is new."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.server.fetch_session_handler import FetchSessionHandler


class Answer:
    def __init__(self, session_id: int, error_code: ErrorCode = ErrorCode.none) -> None:
        self.session_id = session_id
        self.error_code = error_code


KEY, OTHER = (7, 0), (7, 1)


def begun() -> tuple[FetchSessionHandler, dict[tuple[int, int], Any]]:
    handler = FetchSessionHandler()
    partitions: dict[tuple[int, int], Any] = {KEY: object(), OTHER: object()}
    data = handler.build(partitions)
    assert (data.session_id, data.epoch, data.to_send) == (0, 0, partitions)
    assert handler.handle_response(Answer(5))  # type: ignore[arg-type]
    return handler, partitions


def test_only_what_is_asked_differently_is_sent() -> None:
    handler, partitions = begun()
    assert handler.build(partitions) == (5, 1, {}, [])
    handler.handle_response(Answer(5))  # type: ignore[arg-type]
    changed = object()
    assert handler.build({KEY: changed}) == (5, 2, {KEY: changed}, [OTHER])  # type: ignore[dict-item]
    handler.handle_response(Answer(5))  # type: ignore[arg-type]
    again = {KEY: changed, OTHER: partitions[OTHER]}
    assert handler.build(again).to_send == {OTHER: partitions[OTHER]}


@pytest.mark.parametrize(
    ("answer", "is_taken", "ends"),
    [
        (Answer(0), True, 0),
        (Answer(6), True, 5),
        (Answer(0, ErrorCode.fetch_session_id_not_found), False, 0),
        (Answer(0, ErrorCode.invalid_fetch_session_epoch), False, 5),
        (Answer(0, ErrorCode.fetch_session_topic_id_error), False, 5),
    ],
)
def test_after_trouble_the_next_fetch_is_full(answer: Any, is_taken: Any, ends: int) -> None:
    handler, partitions = begun()
    handler.build(partitions)
    assert handler.handle_response(answer) == is_taken
    assert handler.build(partitions) == (ends, 0, partitions, [])


def test_an_answer_that_did_not_come_ends_the_session() -> None:
    handler, partitions = begun()
    handler.build(partitions)
    handler.handle_error()
    data = handler.build(partitions)
    assert (data.session_id, data.is_full) == (5, True)
