"""What can go wrong between a client and its hub.

RelayError
├── HubAway          no answer; `sent` says whether the hub may have acted
└── HubError         the hub answered with an error
    └── Unauthorized the credential is not valid (any more): the client stops
"""

from typing import Any

from relay_receiver.wire.errors import RelayError


class HubAway(RelayError):  # noqa: N818 - it names the situation, as the status does
    """The hub gave no answer. `sent` is False where certainly no byte of the call left this machine."""

    def __init__(self, sentence: str, *, sent: bool, hint: str | None = None) -> None:
        super().__init__(sentence, code="hub_away", hint=hint or "Is the hub running? relay hub status, relay doctor")
        self.sent = sent


class HubError(RelayError):
    """The hub answered with an error.

    Attributes:
        status: of HTTP.
        retry_after: seconds, where the hub said when to come back.
    """

    def __init__(
        self,
        sentence: str,
        *,
        status: int,
        code: str,
        hint: str | None = None,
        retry_after: float | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence, code=code, hint=hint)
        self.data = data or {}
        self.status = status
        self.retry_after = retry_after


class Unauthorized(HubError):  # noqa: N818 - its name in HTTP
    """The hub does not take this credential: repeating the call changes nothing."""


class Displaced(HubError):  # noqa: N818 - its name in the protocol
    """A newer connection of the same holder took the feed over: look at the lease before coming back."""
