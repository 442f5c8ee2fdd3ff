"""A broker's candidate for the office of controller, and the controller while it holds it.

Every broker runs one. The first to create ``/controller`` gets, in the same multi, the next controller epoch; all that
it then writes is fenced by that epoch, and all that it sends carries it. The others watch ``/controller``.

One task processes one event after the other: those about the office here, all others in ``ControllerComponents``. Three
things end a term: ZooKeeper says that somebody else is the controller (a fenced write fails, or ``/controller``
changed), a broker says so (STALE_CONTROLLER_EPOCH, or an AlterPartition with newer epochs), or the session expires.
After any error that was not foreseen the office is given up too: a controller with half its changes told is worse than
a new one.

Differences from Kafka 3.9: ``/controller`` naming this very broker in its present session makes it run the failover
(KAFKA-13407), in a dead session it waits for that to end; STALE_CONTROLLER_EPOCH makes it resign.
Source: kafka.controller.KafkaController.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from nemesis.reference.controller.alter_partition import AlterPartitionItem
from nemesis.reference.controller.controller_channel_manager import Connection
from nemesis.reference.controller.controller_components import ControllerComponents
from nemesis.reference.controller.controller_event_manager import (
    ControllerEvent,
    ControllerEventManager,
)
from nemesis.reference.controller.controller_events import (
    AllocateProducerIds,
    AllocateProducerIdsResult,
    AlterPartitionReceived,
    AlterPartitionResult,
    Answer,
    Expire,
    NewerControllerNoticed,
    Reelect,
    RegisterBrokerAndReelect,
    RequestEvent,
    Startup,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
)
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.model import UNKNOWN_BROKER_EPOCH, Broker
from nemesis.reference.ports import SessionState, WallClock
from nemesis.reference.trace import Kind, Tracer
from nemesis.reference.zk import zk_data
from nemesis.reference.zk.controller_election import NO_CONTROLLER, ControllerZnode, ElectionWon
from nemesis.reference.zk.errors import ControllerMovedError, SessionExpiredError
from nemesis.reference.zk.fenced_writes import ControllerFence
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)


class KafkaController:
    """See the module."""

    def __init__(
        self,
        config: KafkaConfig,
        *,
        zk_client: KafkaZkClient,
        tracer: Tracer,
        broker: Broker,
        connection_factory: Callable[[], Connection],
        wall_clock: WallClock,
        new_topic_id: Callable[[], UUID],
        unclean_leader_election_enable: Callable[[], bool] | None = None,
    ) -> None:
        """``broker`` is what gets registered; ``connection_factory`` makes one connection per broker,
        ``new_topic_id`` an id for a topic that has none.

        ``unclean_leader_election_enable`` is asked for this broker's setting where a topic has none of its own; without
        it the setting is the one in ``config`` for good.
        """
        self.broker_id = config.broker_id
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.registered = asyncio.Event()
        """Set with the first registration, for good: from then on ``broker_epoch`` is one of this life's."""
        self.active_controller_id = NO_CONTROLLER
        self._zk_client = zk_client
        self._tracer = tracer
        self._broker = broker
        self._wall_clock = wall_clock
        self._session_lost = False
        self.event_manager = ControllerEventManager(config.broker_id, self._process)
        self._parts = ControllerComponents(
            config,
            zk_client=zk_client,
            tracer=tracer,
            connection_factory=connection_factory,
            unclean_leader_election_enable=(
                unclean_leader_election_enable or (lambda: config.unclean_leader_election_enable)
            ),
            new_topic_id=new_topic_id,
            put=self._put,
        )
        self.context = self._parts.context
        zk_client.session.register_state_change_handler(self._on_session_state)

    @property
    def is_active(self) -> bool:
        """Whether this broker believes to be the controller."""
        return self.context.fence is not None and self.active_controller_id == self.broker_id

    async def startup(self) -> None:
        """Register the broker and try to be elected; returns when that has been tried once.

        A session that expires meanwhile leaves it to the next one.
        """
        self._zk_client.session.register_znode_change_handler(
            zk_data.CONTROLLER, lambda: self._put(Reelect())
        )
        self.event_manager.start()
        await self.event_manager.put(Startup()).await_over()

    async def shutdown(self) -> None:
        """Stop processing events and let go of the office; the end of the session removes the znodes."""
        await self.event_manager.close()
        await self._resign("shutdown")
        self.active_controller_id = NO_CONTROLLER

    def enable_default_unclean_leader_election(self) -> None:
        """This broker's configuration permits unclean elections from now on: elect where that helps."""
        self._put(UncleanLeaderElectionEnable())

    def enable_topic_unclean_leader_election(self, topic: str) -> None:
        """A topic's configuration permits unclean elections: elect where that helps."""
        if self.is_active:
            self._put(TopicUncleanLeaderElectionEnable(topic))

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, partitions: Sequence[AlterPartitionItem]
    ) -> AlterPartitionResult:
        """Answer an AlterPartition request: its own error, then one answer per partition in their order."""
        return await self.ask(AlterPartitionReceived(broker_id, broker_epoch, tuple(partitions)))

    async def allocate_producer_ids(
        self, broker_id: int, broker_epoch: int
    ) -> AllocateProducerIdsResult:
        """Answer an AllocateProducerIds request: a block for that broker alone, or an error."""
        return await self.ask(AllocateProducerIds(broker_id, broker_epoch))

    async def ask(self, request: RequestEvent[Answer]) -> Answer:
        """Queue what a client or broker asks of the controller; returns its answer, or its refusal."""
        if self.is_active:
            self.event_manager.put(request)
        else:
            request.preempt()
        return await request.result

    # Session

    def _on_session_state(self, state: SessionState) -> Awaitable[None] | None:
        if state is SessionState.EXPIRED:
            self._session_lost = True
            # Before the start there is nothing to resign from, and waiting for it would hold up the next session.
            return self.before_initializing_session() if self.event_manager.is_started else None
        if state is SessionState.CONNECTED and self._session_lost:
            self._session_lost = False
            if self.event_manager.is_started:
                self.event_manager.put(RegisterBrokerAndReelect())
        return None

    def before_initializing_session(self) -> Awaitable[None]:
        """Resign before anything else; no new session opens until what is returned is done."""
        return self.event_manager.clear_and_put(Expire()).await_over()

    # Events

    async def _process(self, event: ControllerEvent) -> None:
        """Process one event, and give up the office where it turns out to be lost or cannot be held."""
        try:
            await self._dispatch(event)
        except ControllerMovedError as error:
            _logger.info("no longer the controller: %s", error)
            await self._resign(str(error))
            await self._elect()
        except SessionExpiredError:
            # Expire is in the queue or about to be; whatever was under way is worth nothing any more.
            _logger.info("the session ended while processing %s", event)
        except Exception as error:
            _logger.exception("processing %s failed", event)
            if self.context.fence is not None:
                await self._trigger_controller_move(f"unexpected {type(error).__name__}")
        finally:
            event.preempt()

    async def _dispatch(self, event: ControllerEvent) -> None:
        match event:
            case Startup():
                await self._process_startup()
            case Reelect():
                await self._maybe_resign()
                await self._elect()
            case Expire():
                self.active_controller_id = NO_CONTROLLER
                await self._resign("session expired")
            case RegisterBrokerAndReelect():
                await self._register_broker()
                await self._maybe_resign()
                await self._elect()
            case NewerControllerNoticed(controller_epoch, reason):
                if self.is_active and self.context.epoch == controller_epoch:
                    await self._trigger_controller_move(reason)
            case _ if self.is_active:
                await self._parts.process(event)

    async def _process_startup(self) -> None:
        await self._zk_client.brokers.make_sure_persistent_paths_exist()
        await self._register_broker()
        await self._elect()

    async def _register_broker(self) -> None:
        stat = await self._zk_client.brokers.register_broker(self._broker, self._wall_clock())
        self.broker_epoch = stat.czxid
        self.registered.set()
        self._tracer.event(
            Kind.BROKER_REGISTERED,
            broker_epoch=stat.czxid,
            session=self._zk_client.session.session_id,
            zxid=stat.czxid,
        )

    def _put(self, event: ControllerEvent) -> None:
        self.event_manager.put(event)

    # Taking and leaving office

    async def _elect(self) -> None:
        controller = await self._zk_client.election.get_controller()
        self.active_controller_id = self._holder(controller)
        if controller is not None:
            await self._resume_own_office(controller)
            return
        try:
            won = await self._zk_client.election.register_controller_and_increment_controller_epoch(
                self.broker_id, self._wall_clock()
            )
        except ControllerMovedError as error:
            _logger.debug("%s", error)
            await self._maybe_resign()
            return
        await self._take_office(won)

    async def _resume_own_office(self, controller: ControllerZnode) -> None:
        """There is a ``/controller``. If it is this broker's and nobody acts, act or wait."""
        if self._holder(controller) != self.broker_id or self.context.fence is not None:
            return
        if not self._is_of_this_session(controller):
            _logger.info(
                "/controller belongs to a session of ours that is dead; waiting for its end"
            )
            return
        controller_epoch = await self._zk_client.election.get_controller_epoch()
        # Unless the office is still ours, the epoch that was read may be another's; its change is an event to come.
        if (
            controller_epoch is not None
            and await self._zk_client.election.get_controller() == controller
        ):
            epoch, stat = controller_epoch
            await self._take_office(ElectionWon(ControllerFence(epoch, stat.version), stat.mzxid))

    def _holder(self, controller: ControllerZnode | None) -> int:
        """Whose office it is. The session decides, not the text, which somebody else may have overwritten."""
        if controller is None:
            return NO_CONTROLLER
        return self.broker_id if self._is_of_this_session(controller) else controller.broker_id

    def _is_of_this_session(self, controller: ControllerZnode | None) -> bool:
        session_id = self._zk_client.session.session_id
        return controller is not None and controller.session_id == session_id

    async def _take_office(self, won: ElectionWon) -> None:
        self.context.fence = won.fence
        self.active_controller_id = self.broker_id
        self._tracer.event(
            Kind.CONTROLLER_ELECTED,
            controller_epoch=won.fence.controller_epoch,
            zk_version=won.fence.zk_version,
            session=self._zk_client.session.session_id,
            zxid=won.zxid,
        )
        _logger.info("elected controller, epoch %d", won.fence.controller_epoch)
        await self._parts.on_controller_failover()
        self._tracer.event(
            Kind.CONTROLLER_FAILOVER,
            controller_epoch=self.context.epoch,
            live=self.context.live_or_shutting_down_broker_ids,
        )

    async def _maybe_resign(self) -> None:
        """Read ``/controller`` and resign if it is no longer ours; re-arms its watch."""
        controller = await self._zk_client.election.get_controller()
        self.active_controller_id = self._holder(controller)
        if self.context.fence is not None and not self._is_of_this_session(controller):
            await self._resign(f"/controller names broker {self.active_controller_id}")

    async def _trigger_controller_move(self, reason: str) -> None:
        """Resign, and remove ``/controller`` if it is still ours so that somebody is elected."""
        fence = self.context.fence
        await self._resign(reason)
        if fence is None:
            return
        if self._is_of_this_session(await self._zk_client.election.get_controller()):
            try:
                await self._zk_client.election.delete_controller(fence)
            except ControllerMovedError as error:
                _logger.info("%s", error)
        await self._maybe_resign()

    async def _resign(self, reason: str) -> None:
        """Stop acting: nothing is sent or written in this term any more. Harmless without the office."""
        fence = self.context.fence
        await self._parts.on_controller_resignation()
        if fence is not None:
            self._tracer.event(
                Kind.CONTROLLER_RESIGNED, controller_epoch=fence.controller_epoch, reason=reason
            )
            _logger.info("resigned from epoch %d: %s", fence.controller_epoch, reason)
