"""The calls of protocol 1, typed: one method a call, JSON objects in and out."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from relay_receiver.client.asks import Asks
from relay_receiver.client.calls import items, object_of, part
from relay_receiver.client.controls import Controls
from relay_receiver.client.docs import Docs
from relay_receiver.client.search import Search
from relay_receiver.client.tasks import Tasks

Json = dict[str, Any]

UPLOAD_SECONDS = 300.0
LEASE_CALL_SECONDS = 10.0
"""A lease lives 30 s: a renewal that takes longer than this is better made again."""


class Hub(Asks, Controls, Docs, Tasks, Search):
    """One hub as one member.

    Every method raises `HubAway` or `HubError`. What may safely be made again is made again at once, a few times;
    `patient=False` leaves that to the caller.
    """

    async def state(self) -> Json:
        """Who this member is, its workspace and channels, their latest messages, and the cursor."""
        return await self._call("GET", "/state")

    async def enroll(self, *, invite: str, client_secret: str, identity_secret: str, name: str) -> Json:
        """Join with a code: `{agentId, workspace, channel}`. The same secrets give the same answer again."""
        body = {"invite": invite, "clientSecret": client_secret, "identitySecret": identity_secret, "name": name}
        return await self._call("POST", "/enroll", body, idempotent=True)

    async def identity(self, secret: str) -> Json:
        """The agent's own global profile."""
        answer = await self.rest.call("GET", "/agent-identity", bearer=secret, retry=self._patient)
        return object_of(object_of(answer).get("identity"))

    async def change_identity(self, secret: str, *, rev: int, **changes: Any) -> Json:  # noqa: ANN401 - name, avatarUrl, signature
        """Change the agent's own global profile; a stale `rev` is a 409."""
        answer = await self.rest.call("PATCH", "/agent-identity", json={"rev": rev, **changes}, bearer=secret)
        return object_of(object_of(answer).get("identity"))

    async def peers(self) -> list[Json]:
        """Everybody in the workspace."""
        return items(await self._any("GET", "/peers"), "peers")

    async def channels(self) -> list[Json]:
        """This member's channels, `{id, name}` each."""
        return items(await self._any("GET", "/channels"), "channels")

    async def create_channel(self, name: str) -> Json:
        """Make a channel: `{id, name}`."""
        return await self._call("POST", "/channels", {"name": name})

    async def leave_channel(self, channel: str) -> None:
        """Leave; a new invite is needed to come back."""
        await self._any("DELETE", f"/channels/{part(channel)}/me")

    async def members(self, channel: str) -> list[Json]:
        """Who is in a channel: `{id, name, kind, description, status, receiver}` each."""
        return items(await self._any("GET", f"/channels/{part(channel)}/members"), "members")

    async def invite(self, channel: str, *, person: bool = False, **more: Any) -> Json:  # noqa: ANN401 - JSON
        """Make an enrolment code for one channel: `{code, expiresAt}`."""
        return await self._call("POST", "/invites", {"channel": channel, "person": person, **more})

    async def console_link(self) -> Json:
        """A link that signs this person in to the console, once: `{path, url, expiresAt}`."""
        return await self._call("POST", "/console-links", {})

    async def declare(self, channel: str, *, rev: int, mode: str, text: str) -> Json:
        """Say what one intends to take; valid for 90 s."""
        return await self._call("PUT", f"/channels/{part(channel)}/me/status", {"rev": rev, "mode": mode, "text": text})

    async def ping(self, channel: str, *, rev: int | None = None) -> Json:
        """Contact; with the current `rev` the declaration is renewed."""
        body = {} if rev is None else {"rev": rev}
        return await self._call("POST", f"/channels/{part(channel)}/me/ping", body, idempotent=True)

    async def post_message(self, body: Mapping[str, Any]) -> Json:
        """Post; a lost answer is asked for again under the same operation id, so it is posted once."""
        named = {"operationId": f"client:{uuid.uuid4().hex}", **body}
        return await self._call("POST", "/messages", named, idempotent=True)

    async def history(
        self, channel: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> Json:
        """A page of messages, ascending: `{messages, cursor, more, prunedThrough}`."""
        params = {"channel": channel, "after": after, "before": before, "limit": limit}
        return await self._call("GET", "/messages", params=params)

    async def message(self, message: str) -> Json:
        """One message with its `delivery`."""
        return await self._call("GET", f"/messages/{part(message)}")

    async def withdraw(self, message: str) -> Json:
        """Take a request back."""
        return await self._call("POST", f"/messages/{part(message)}/withdraw", {})

    async def upload(
        self, data: bytes, name: str, media_type: str = "application/octet-stream", *, channel: str | None = None
    ) -> Json:
        """Store an attachment, content-addressed: `{id, name, type, size}`."""
        answer = await self.rest.call(
            "POST",
            "/attachments",
            content=(data, media_type),
            params={"name": name, "channel": channel},
            retry=self._patient,
            idempotent=True,
            timeout=UPLOAD_SECONDS,
        )
        return object_of(answer)

    async def attachment(self, attachment: str) -> bytes:
        """The bytes of an attachment."""
        path = f"/attachments/{part(attachment)}"
        return await self.rest.exchange("GET", path, retry=self._patient, timeout=UPLOAD_SECONDS)

    async def subscribe(self, channel: str | None = None, *, cursor: str | None = None) -> Json:
        """Make a durable consumer of `message.created`: `{id}`."""
        body = {"type": "message.created", "channel": channel, "cursor": cursor}
        return await self._call(
            "POST", "/subscriptions", {key: value for key, value in body.items() if value is not None}
        )

    async def acknowledge(self, subscription: str, cursor: str) -> None:
        """All up to `cursor` is stored here."""
        await self._any("PATCH", f"/subscriptions/{part(subscription)}", {"cursor": cursor}, idempotent=True)

    async def inbox(self) -> Json:
        """What is not acknowledged yet: `{deliveries: [...]}`."""
        return await self._call("GET", "/inbox")

    async def updates(
        self, *, cursor: str | None, channel: str | None = None, types: Sequence[str] = (), wait: int = 25
    ) -> Json:
        """One long poll: `{cursor, events}`. Never made again here: the feed decides."""
        params = {"wait": wait, "cursor": cursor, "channel": channel, "types": ",".join(types) or None}
        return object_of(await self.rest.call("GET", "/updates", params=params, timeout=wait + 10.0))

    async def lease(self, channel: str | None = None) -> Json | None:
        """The lease of this agent in a channel, or None."""
        answer = await self._any("GET", "/receiver", params={"channel": channel})
        return object_of(answer) if answer else None

    async def take_lease(
        self,
        *,
        channel: str,
        holder: str,
        subscription: str | None,
        session: str | None,
        runtime: str,
        state: str,
        detail: Any = None,  # noqa: ANN401 - JSON
        report: Json | None = None,
    ) -> Json:
        """Take or renew the lease: `{fence, expires, requestId, run}`; 409 `lease_held` where another has it."""
        body: Json = {
            "channel": channel,
            "holderId": holder,
            "subscription": subscription,
            "sessionId": session,
            "runtime": runtime,
            "state": state,
            "detail": detail,
        }
        if report is not None:
            body["report"] = report
        return await self._call("POST", "/receiver", body, idempotent=True, timeout=LEASE_CALL_SECONDS)

    async def release(self, *, channel: str, holder: str) -> None:
        """Give the lease back; an open run stays open."""
        body = {"channel": channel, "holderId": holder, "action": "release"}
        await self._any("PATCH", "/receiver", body, idempotent=True, timeout=LEASE_CALL_SECONDS)

    async def begin(
        self,
        *,
        channel: str,
        holder: str,
        fence: Any,  # noqa: ANN401 - opaque
        request_id: str,
        message: str,
        attempt: int,
        claim: str,
    ) -> Json:
        """Open the run of a message. The same claim while it is open is answered the same."""
        return await self._run(
            "begin",
            channel=channel,
            holderId=holder,
            fence=fence,
            requestId=request_id,
            message=message,
            attempt=attempt,
            claim=claim,
        )

    async def stage(
        self,
        *,
        channel: str,
        holder: str,
        fence: Any,  # noqa: ANN401 - opaque
        request_id: str,
        state: str,
        detail: Any = None,  # noqa: ANN401 - JSON
        claim: str | None = None,
    ) -> Json:
        """Show how far a run has come."""
        return await self._run(
            "stage",
            channel=channel,
            holderId=holder,
            fence=fence,
            requestId=request_id,
            state=state,
            detail=detail,
            claim=claim,
        )

    async def finish(
        self,
        *,
        channel: str,
        holder: str,
        fence: Any,  # noqa: ANN401 - opaque
        request_id: str,
        state: str,
        outcome: str | None = None,
        reason: str | None = None,
        claim: str | None = None,
    ) -> Json:
        """Close a run that made no message. Twice is fine."""
        return await self._run(
            "finish",
            channel=channel,
            holderId=holder,
            fence=fence,
            requestId=request_id,
            state=state,
            outcome=outcome,
            reason=reason,
            claim=claim,
        )

    async def settle(
        self, *, channel: str | None = None, agent: str, request_id: str, outcome: str, reason: str
    ) -> Json:
        """End somebody's open run, as a person."""
        return await self._run(
            "settle", channel=channel, agent=agent, requestId=request_id, outcome=outcome, reason=reason
        )

    async def _run(self, action: str, **body: Any) -> Json:  # noqa: ANN401 - JSON
        said = {key: value for key, value in body.items() if value is not None}
        return await self._call("POST", "/receiver/run", {"action": action, **said}, idempotent=True)
