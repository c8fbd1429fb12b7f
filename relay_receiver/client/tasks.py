"""Task lists of a member's channels."""

import uuid
from typing import Any

from relay_receiver.client.calls import Calls, Json, part


class Tasks(Calls):
    """The calls of `/tasks`."""

    async def create_task(self, channel: str, **said: Any) -> Json:  # noqa: ANN401 - the fields of a task
        """Make a task of `title` and any of description, state, assignee, message, doc and operationId."""
        named = {"operationId": f"client:{uuid.uuid4().hex}", **said}
        return await self._call("POST", "/tasks", {"channel": channel, **named}, idempotent=True)

    async def tasks(
        self,
        channel: str | None = None,
        *,
        state: str | None = None,
        assignee: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> Json:
        """`{tasks, more}`, the last changed first; `state` is active, all, or one of theirs."""
        params = {"channel": channel, "state": state, "assignee": assignee, "before": before, "limit": limit}
        return await self._call("GET", "/tasks", params=params)

    async def task(self, task: str) -> Json:
        """One task."""
        return await self._call("GET", f"/tasks/{part(task)}")

    async def change_task(self, task: str, *, rev: int, **changes: Any) -> Json:  # noqa: ANN401 - the fields of a task
        """Change what was read at `rev`; the same change again is the same as once.

        Raises:
            HubError: 409 `stale_rev`, somebody changed it since; `data["current"]` is the task as it is now.
        """
        return await self._call("PATCH", f"/tasks/{part(task)}", {"rev": rev, **changes}, idempotent=True)
