"""The lease of this binding at the hub: taken, renewed, lost, and what the hub holds open for it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from relay_receiver import __version__
from relay_receiver.client.errors import HubAway, HubError
from relay_receiver.receiver.backoff import Ladder
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.situation import LeaseState
from relay_receiver.wire import limits

RENEW_SECONDS = 12.0
"""Between renewals while the lease is held; it lasts 30 s."""
STANDBY_SECONDS = 5.0
"""Between tries while another holder has it."""
RELEASE_SECONDS = 3.0
"""How long a stopping receiver tries to give the lease back; it ends by itself in 30 s."""
UNAUTHORIZED_SECONDS = 300.0
"""Between tries with a credential that the hub refused."""
NOTICE_SECONDS = 1.0
"""How long a change that people are shown must last before the hub is told of it outside a renewal's turn."""

_NOT_UNDERSTOOD = frozenset({400, 413, 422})

State = Callable[[], str]
Reconcile = Callable[[dict[str, Any] | None], None]
"""Hears of the run that the hub holds open, after each renewal."""
Gather = Callable[[], Awaitable[dict[str, Any] | None]]
"""The report that goes with a renewal."""
Notable = Callable[[], object]
"""What of the receiver is worth a renewal of its own where it has changed."""


class Lease:
    """Keeps the lease while the process lives. `changed` is set at every move of its state."""

    def __init__(
        self,
        parts: Parts,
        *,
        state: State,
        reconcile: Reconcile,
        report: Gather | None = None,
        notable: Notable = lambda: None,
    ) -> None:
        self._parts = parts
        self._state = state
        self._reconcile = reconcile
        self._report, self._bare = report, False
        self._notable, self._told = notable, notable()
        self._timer: asyncio.TimerHandle | None = None
        self._ladder = Ladder(parts.boot, ceiling=15.0)
        self.held = asyncio.Event()

    def renew_soon(self) -> None:
        """Tell the hub at once: the state that it shows has changed, or the lease is in doubt."""
        self._parts.lease_in_doubt.set()

    def notice(self) -> None:
        """See whether something has changed that people are shown; if it lasts a moment, the hub is told."""
        if self._timer is None and self._notable() != self._told:
            self._timer = asyncio.get_running_loop().call_later(NOTICE_SECONDS, self._notice)

    def _notice(self) -> None:
        self._timer = None
        if self._notable() != self._told and self._parts.situation.lease is LeaseState.HELD:
            self.renew_soon()

    async def run(self) -> None:
        """Take and renew the lease until cancelled."""
        while True:
            self._parts.lease_in_doubt.clear()
            wait = await self._renew()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._parts.lease_in_doubt.wait()

    async def release(self) -> None:
        """Give the lease back, so that another holder need not wait. An open run stays open."""
        if self._parts.situation.lease is LeaseState.HELD:
            binding = self._parts.binding
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._parts.hub.release(channel=binding.channel, holder=binding.holder)
            except (HubAway, HubError, TimeoutError) as error:
                self._parts.log.info("lease not released", extra={"why": str(error)})

    async def _renew(self) -> float:
        parts = self._parts
        situation = parts.situation
        self._told = self._notable()
        report = None if self._bare or self._report is None else await self._report()
        asked = parts.boot()
        try:
            answer = await parts.hub.take_lease(
                channel=parts.binding.channel,
                holder=parts.binding.holder,
                subscription=parts.binding.subscription,
                session=parts.binding.session,
                runtime=f"relay-receiver/{__version__} {parts.binding.adapter}",
                state=self._state(),
                detail=situation.detail(),
                report=report,
            )
        except HubAway as error:
            return self._away(error.sentence)
        except HubError as error:
            if report is not None and error.status in _NOT_UNDERSTOOD:
                # The lease counts for more than what is told with it.
                self._bare = True
                parts.log.warning("report refused", extra={"why": error.sentence})
                return 0.0
            return self._refused(error)
        self._ladder.succeeded()
        situation.unauthorized = False
        situation.hub_error = None
        situation.fence = str(answer["fence"])
        situation.lease_until = asked + limits.LEASE_SECONDS
        if isinstance(expires := answer.get("expires"), int | float):
            situation.hub_clock = expires / 1000 - limits.LEASE_SECONDS - parts.boot()
        self._set(LeaseState.HELD)
        self._reconcile(answer.get("run"))
        self.held.set()
        return RENEW_SECONDS

    def _away(self, why: str) -> float:
        situation = self._parts.situation
        situation.hub_error = why
        if situation.lease is LeaseState.HELD and self._parts.boot() >= situation.lease_until:
            self._set(LeaseState.LAPSED)
        return self._ladder.failed()

    def _refused(self, error: HubError) -> float:
        situation = self._parts.situation
        if error.status == 401:
            situation.unauthorized = True
            situation.hub_error = error.sentence
            self._set(LeaseState.LAPSED)
            return UNAUTHORIZED_SECONDS
        if error.code == "lease_held":
            situation.hub_error = None
            self._set(LeaseState.STANDBY)
            return STANDBY_SECONDS
        situation.last_error = error.sentence
        wait = self._away(error.sentence)
        return max(wait, error.retry_after or 0.0)

    def _set(self, state: LeaseState) -> None:
        situation = self._parts.situation
        if situation.lease is not state:
            self._parts.log.info("lease", extra={"lease": state.value, "fence": situation.fence})
            situation.reconciled = False
        situation.lease = state
        if state is not LeaseState.HELD:
            self.held.clear()
