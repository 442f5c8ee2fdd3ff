"""What the leader of a KRaft quorum answers about it during a run, now and then.

Every voter is asked to describe the quorum (DescribeQuorum), past every link rule. Only one that holds itself for the
leader answers; one that was deposed and does not know it does, too. Each answer is a ``quorum-sample`` event.
"""

from __future__ import annotations

import asyncio
from typing import Final

from nemesis.faults.quorum_view import QuorumView
from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder

INTERVAL_S: Final = 0.5


async def record_quorum(view: QuorumView, recorder: Recorder) -> None:
    """Ask every ``INTERVAL_S`` until cancelled. A high watermark that the leader does not know yet is left out."""
    while True:
        for claim in await view.claims():
            known = {"high_watermark": claim.high_watermark} if claim.high_watermark >= 0 else {}
            recorder.record(
                Kind.QUORUM_SAMPLE, node=claim.node, controller_epoch=claim.epoch, **known
            )
        await asyncio.sleep(INTERVAL_S)
