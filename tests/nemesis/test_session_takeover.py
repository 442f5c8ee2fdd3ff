"""The password of a ZooKeeper session, from its id."""

from __future__ import annotations

from nemesis.session_takeover import JavaRandom, session_password


def test_java_random_gives_javas_numbers() -> None:
    # `new java.util.Random(seed).nextInt()`, three times for 42.
    assert JavaRandom(0).next_int() == -1155484576
    forty_two = JavaRandom(42)
    assert [forty_two.next_int() for _ in range(3)] == [-1170105035, 234785527, -1360544799]


def test_bytes_come_lowest_first_four_to_an_integer() -> None:
    whole = JavaRandom(7).next_bytes(8)
    again = JavaRandom(7)
    assert int.from_bytes(whole[:4], "little", signed=True) == again.next_int()
    assert int.from_bytes(whole[4:], "little", signed=True) == again.next_int()


def test_signed_and_unsigned_ids_are_the_same_session() -> None:
    session = -0x6F00_1234_5678_9ABC
    assert session_password(session) == session_password(session + 2**64)
    assert len(session_password(session)) == 16
