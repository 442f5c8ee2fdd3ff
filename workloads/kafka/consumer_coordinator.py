"""ConsumerCoordinator: one member of a group of consumers, one attempt per request.

Its duties are those of Kafka's: it finds the group's coordinator, joins, has its assignment (and assigns, if the
coordinator makes it the group's leader), keeps its session alive, commits offsets and reads them, and leaves. The
caller decides what to do when: each method makes one request, raises ``KafkaError`` if it fails, and notes what the
failure means for the membership. With an eager assignor a member gives up its partitions before it joins again. With a
cooperative one (KIP-429) it keeps them, and claims what its last assignment has given to it, with the generation of
that assignment: it may have missed the generations behind it. What the next assignment does not contain it gives up,
and joins again (``rejoin``).

A member joins again, too, when it subscribes to other topics, and when it leads the group and the number of partitions
has changed since it assigned them.

A static member has an instance id (KIP-345). Its membership outlives its process: the next process of the instance id
joins without a member id and takes it over, in most cases without a rebalance. The former process is fenced then: it
has to end, because it would otherwise take the membership back.

A failure is definite when the coordinator answers it before it writes anything. NOT_COORDINATOR and
COORDINATOR_NOT_AVAILABLE are not, because they may follow an append that was not replicated in time.

Source: ConsumerCoordinator and AbstractCoordinator of Kafka 3.9's clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from nemesis.workloads.kafka import codec as wire_format
from nemesis.workloads.kafka import group_requests as requests
from nemesis.workloads.kafka.assignors import RANGE, Assignor
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.codec import Codec
from nemesis.workloads.kafka.consumer_protocol import (
    ASSIGNMENT,
    SUBSCRIPTION,
    Subscribed,
    assigned_partitions,
    assignment,
    subscribed_of,
    subscription,
)
from nemesis.workloads.kafka.errors import BrokerError, ConnectionFailed, KafkaError
from nemesis.workloads.kafka.group_offset_requests import (
    Committed,
    TopicPartition,
    commit_errors,
    commit_request,
    fetch_error,
    fetch_request,
    fetched_offsets,
)
from nemesis.workloads.kafka.group_requests import Membership

NO_MEMBER: Final = ""
NO_GENERATION: Final = -1
_REFUSED: Final = frozenset(
    {
        ErrorCode.illegal_generation,
        ErrorCode.unknown_member_id,
        ErrorCode.fenced_instance_id,
        ErrorCode.rebalance_in_progress,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.member_id_required,
        ErrorCode.inconsistent_group_protocol,
        ErrorCode.group_max_size_reached,
        ErrorCode.invalid_group_id,
        ErrorCode.offset_metadata_too_large,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unstable_offset_commit,
    }
)
_MOVED: Final = frozenset({ErrorCode.not_coordinator, ErrorCode.coordinator_not_available})
_LOST: Final = frozenset({ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id})


class ConsumerCoordinator:
    """A member that subscribes to some topics; it has neither a coordinator nor a membership at first."""

    def __init__(
        self,
        client: KafkaClient,
        group: str,
        topics: Sequence[str],
        *,
        instance: str | None = None,
        assignor: Assignor = RANGE,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        codec: Codec = wire_format,
    ) -> None:
        self.node: int | None = None
        """The broker that coordinates the group, as far as the member knows."""
        self.member_id = NO_MEMBER
        self.generation = NO_GENERATION
        self.is_assigned = False
        """Whether the member has its assignment of ``generation`` and knows of nothing that has ended it."""
        self.is_fenced = False
        """Whether another process has taken over the instance id."""
        self.instance = instance
        self._client = client
        self.group = group
        self.topics = tuple(topics)
        """The topics to which the member subscribes."""
        self.assignor = assignor
        """How the member assigns partitions if it leads the group."""
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._codec = codec
        self._claimed: tuple[TopicPartition, ...] = ()
        self._claimed_since = NO_GENERATION
        """The generation that has assigned what is claimed."""
        self._members: dict[str, Subscribed] = {}
        """By member id what it has stated, if this member leads the group."""
        self._counts: dict[str, int] = {}
        """The number of partitions of each subscribed topic when this member assigned them as the group's leader."""
        self._is_assigning = False
        """Whether this member leads the group and has to assign: a static leader that comes back must not."""

    @property
    def _subscribed(self) -> Subscribed:
        if not self.assignor.is_cooperative or not self._claimed:
            return Subscribed(self.topics)
        return Subscribed(self.topics, self._claimed, self._claimed_since)

    @property
    def membership(self) -> Membership:
        """As whom the member sends a request now."""
        return Membership(self.group, self.member_id, self.generation, self.instance)

    async def find(self, timeout_s: float) -> None:
        """Ask some broker which one coordinates the group."""
        response = await self._client.ask_any(requests.find_request(self.group), timeout_s)
        answer = response.coordinators[0]
        if answer.error_code is not ErrorCode.none:
            raise BrokerError(answer.error_code, definite=True)
        if int(answer.node_id) not in self._client.metadata.brokers:
            await self._client.refresh_metadata()
        self.node = int(answer.node_id)

    async def join(self, timeout_s: float) -> int:
        """Join the group's next generation; return how many members it has if this one leads it, else 0.

        After MEMBER_ID_REQUIRED the member has an id with which it has to join. The answer comes when the other members
        have joined, too, or have had ``rebalance_timeout_ms`` for it.
        """
        self.is_assigned = False
        request = requests.join_request(
            self.membership,
            self.assignor.name,
            self._codec.encode_embedded(subscription(self._subscribed)),
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
        )
        allowed_s = timeout_s + self._rebalance_timeout_ms / 1000
        response = await self._exchange(request, allowed_s)
        if response.error_code is ErrorCode.member_id_required:
            self.member_id = response.member_id
        self._check(response.error_code)
        self.member_id, self.generation = response.member_id, int(response.generation_id)
        self._members = {
            member.member_id: subscribed_of(
                self._codec.decode_embedded(member.metadata, SUBSCRIPTION), member.group_instance_id
            )
            for member in response.members
        }
        self._is_assigning = bool(self._members) and not response.skip_assignment
        return len(self._members)

    async def sync(self, timeout_s: float) -> list[TopicPartition]:
        """Return the member's partitions in this generation; a member that leads the group assigns them before."""
        if self._members:
            await self._client.refresh_metadata()
            self._counts = self._partition_counts()
        assignments = self._assign() if self._is_assigning else {}
        request = requests.sync_request(self.membership, self.assignor.name, assignments)
        allowed_s = timeout_s + self._rebalance_timeout_ms / 1000
        response = await self._answered(request, allowed_s, lambda answer: answer.error_code)
        self.is_assigned = True
        assigned: list[TopicPartition] = []
        if response.assignment:
            message = self._codec.decode_embedded(response.assignment, ASSIGNMENT)
            assigned = assigned_partitions(message)
        self._claimed, self._claimed_since = tuple(assigned), self.generation
        return assigned

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics from the next generation on; what is claimed of others is given up before."""
        self.topics = tuple(topics)
        self._claimed = tuple(tp for tp in self._claimed if tp[0] in self.topics)
        self.rejoin()

    @property
    def has_to_assign_again(self) -> bool:
        """Whether this member leads the group and its metadata names other partitions than it has assigned."""
        return bool(self._members) and self._partition_counts() != self._counts

    def rejoin(self) -> None:
        """Join again, though the membership has not ended."""
        self.is_assigned = False

    async def heartbeat(self, timeout_s: float) -> None:
        """Keep the session alive; learn whether the group rebalances."""
        request = requests.heartbeat_request(self.membership)
        await self._answered(request, timeout_s, lambda answer: answer.error_code)

    async def leave(self, timeout_s: float) -> None:
        """Leave the group. Kafka's consumers do that only if they are dynamic members."""
        request = requests.leave_request(self.membership)
        await self._answered(request, timeout_s, requests.leave_error)
        self._forget_membership()

    async def remove_instance(self, timeout_s: float) -> None:
        """Take the static member out of the group, as an administrator who knows its instance id only."""
        request = requests.leave_request(self.membership._replace(member_id=NO_MEMBER))
        await self._answered(request, timeout_s, requests.leave_error)
        self._forget_membership()

    async def commit(
        self, commits: Mapping[TopicPartition, Committed], timeout_s: float
    ) -> dict[TopicPartition, KafkaError | None]:
        """Commit the offsets of partitions in one request; return the failure of each, None if it was acknowledged."""
        response = await self._exchange(commit_request(self.membership, commits), timeout_s)
        errors = commit_errors(response)
        return {tp: self._committed(errors.get(tp)) for tp in commits}

    async def fetch(
        self, tps: Iterable[TopicPartition], timeout_s: float, *, is_stable: bool = False
    ) -> dict[TopicPartition, Committed | KafkaError]:
        """Return the offset that the group has committed for each of the partitions, or why it is unknown.

        With ``is_stable`` it is UNSTABLE_OFFSET_COMMIT while a transaction has an offset pending.
        """
        request = fetch_request(self.group, tps, is_stable=is_stable)
        fetched = fetched_offsets(await self._answered(request, timeout_s, fetch_error))
        return {tp: self._fetched(fetched.get(tp)) for tp in tps}

    def _committed(self, error: ErrorCode | None) -> KafkaError | None:
        if error is None:
            return _unanswered()
        return None if error is ErrorCode.none else self._failure(error)

    def _fetched(self, outcome: Committed | ErrorCode | None) -> Committed | KafkaError:
        if isinstance(outcome, Committed):
            return outcome
        return _unanswered() if outcome is None else self._failure(outcome)

    def _partition_counts(self) -> dict[str, int]:
        topics = self._client.metadata.topics
        return {
            topic: len(topics[topic].partitions)
            for subscribed in self._members.values()
            for topic in subscribed.topics
            if topic in topics
        }

    def _assign(self) -> dict[str, bytes]:
        assigned = self.assignor.assign(self._members, self._counts)
        return {
            member: self._codec.encode_embedded(assignment(partitions))
            for member, partitions in assigned.items()
        }

    async def _answered(
        self, request: Any, timeout_s: float, error_of: Callable[[Any], ErrorCode]
    ) -> Any:
        response = await self._exchange(request, timeout_s)
        self._check(error_of(response))
        return response

    async def _exchange(self, request: Any, timeout_s: float) -> Any:
        node = -1 if self.node is None else self.node
        try:
            return await self._client.request_coordinator(node, request, timeout_s)
        except KafkaError:
            self.node = None
            raise

    def _check(self, error: ErrorCode) -> None:
        """Raise an error, if it is one."""
        if error is not ErrorCode.none:
            raise self._failure(error)

    def _failure(self, error: ErrorCode) -> BrokerError:
        """Note what an error means for the membership, and return it."""
        self.note(error)
        return BrokerError(error, definite=error in _REFUSED)

    def note(self, error: ErrorCode) -> None:
        """Note what the coordinator's error, also in answer to another client's request, means for the membership."""
        if error in _MOVED:
            self.node = None
        elif error in _LOST:
            self._forget_membership()
            self.is_fenced = error is ErrorCode.fenced_instance_id
        elif error is ErrorCode.illegal_generation:
            self._end_generation()
        elif error is ErrorCode.rebalance_in_progress:
            self.is_assigned = False

    def _forget_membership(self) -> None:
        self.member_id = NO_MEMBER
        self._end_generation()

    def _end_generation(self) -> None:
        """Other members may own what this one has owned: it claims nothing any longer."""
        self.generation, self.is_assigned = NO_GENERATION, False
        self._claimed, self._claimed_since = (), NO_GENERATION
        self._members = {}


def _unanswered() -> ConnectionFailed:
    """The failure of a partition that the response does not name."""
    return ConnectionFailed("PARTITION_NOT_ANSWERED", definite=False)
