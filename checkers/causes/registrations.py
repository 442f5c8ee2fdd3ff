"""Why a broker is not registered: its znode was deleted with its session, and it has not created another one."""

from __future__ import annotations

from nemesis.checkers.causes.chain import Chain, Link, expected
from nemesis.checkers.causes.view import Registration, View
from nemesis.checkers.explain.words import zxid
from nemesis.history.events import Event, Kind


def not_registered(view: View, broker: int) -> Chain:
    """Return the chain of a broker that has no znode under ``/brokers/ids``; empty if the view has one."""
    registration = view.registration(broker)
    if registration is not None and registration.deleted is None:
        return []
    if registration is None:
        lost = Link(f"ZooKeeper's log has no registration of broker {broker}")
    else:
        lost = _deletion(view, broker, registration)
    return [
        *_in_order(view, [lost, *_last_start(view, broker, registration)]),
        expected(f"broker {broker} creates its znode /brokers/ids/{broker}"),
    ]


def _in_order(view: View, chain: Chain) -> Chain:
    """The links by time, those without an event last."""

    def time_ns(link: Link) -> int:
        return view.until_ns if link.row is None else view.time_of(link.row[1])

    return sorted(chain, key=time_ns)


def _deletion(view: View, broker: int, registration: Registration) -> Link:
    assert registration.deleted is not None
    row, event = registration.deleted
    end = view.session_end(event.zxid)
    how = "by an operation" if end is None else f"with its session, which was {end[1].reason}"
    return Link(
        f"{view.ago(event)}, the registration of broker {broker} (broker epoch {registration.epoch}) was deleted "
        f"{how} ({zxid(event.zxid)})",
        (row, event),
    )


def _last_start(view: View, broker: int, registration: Registration | None) -> Chain:
    """What the broker's last process did about its registration."""
    chain: Chain = []
    started = view.of_process(broker, Kind.BROKER_STARTED)
    if started:
        chain.append(Link(f"{view.ago(started[-1][1])}, broker {broker} last started", started[-1]))
    registered = view.of_process(broker, Kind.BROKER_REGISTERED)
    if registered:
        row, event = registered[-1]
        text = f"{view.ago(event)}, broker {broker} reported its registration, with broker epoch {event.broker_epoch}"
        if registration is not None and _is_foreign(event, registration):
            text += ", whose znode an earlier session had created"
        chain.append(Link(text, (row, event)))
    elif started:
        chain.append(Link(f"broker {broker} has not reported a registration since"))
    return chain


def _is_foreign(registered: Event, registration: Registration) -> bool:
    """Whether the broker reported a znode that another session than its own created."""
    created = registration.created[1]
    return registered.broker_epoch == created.zxid and registered.session != created.session
