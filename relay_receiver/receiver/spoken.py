"""What a running receiver does when it is spoken to over its control socket."""

from collections.abc import Callable
from typing import Any

from relay_receiver.journal import binding as bindings
from relay_receiver.journal import chain
from relay_receiver.receiver import leftovers, settle, views
from relay_receiver.receiver.control import Verb
from relay_receiver.receiver.how import How
from relay_receiver.receiver.lease import Lease
from relay_receiver.receiver.parts import Parts
from relay_receiver.receiver.runner import Runner
from relay_receiver.wire.errors import RelayError


class Spoken:
    """The verbs of the control socket, each run between two steps of the runner where it changes anything."""

    def __init__(self, parts: Parts, runner: Runner, lease: Lease, *, stop: Callable[[How], None]) -> None:
        self._parts = parts
        self._runner = runner
        self._lease = lease
        self._stop = stop

    def verbs(self) -> dict[str, Verb]:
        """The calls by name."""
        return {
            "status": self.status,
            "stop": self.stop,
            "resume": self.resume,
            "jobs": self.jobs,
            "job": self.job,
            "cancel": self.cancel,
            "settle": self.settle,
            "settings": self.settings,
        }

    async def status(self, _: dict[str, Any]) -> dict[str, Any]:
        """The status of this process and its journal."""
        stored = await self._parts.journal.read(views.stored_status, self._parts.binding)
        return views.running_status(self._parts.situation, stored)

    async def stop(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Begin to stop; the caller waits for the process to go."""
        self._stop(How[str(asked.get("how")).upper()])
        return {"state": "stopping"}

    async def resume(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Lift the pause of the chain guard."""
        await self._parts.write(chain.resume, at=self._parts.now(), who=str(asked.get("who")))
        self._changed()
        return await self.status({})

    async def jobs(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The newest jobs."""
        return await self._parts.journal.read(
            views.jobs_view, limit=int(asked.get("limit", 50)), open_only=bool(asked.get("open_only"))
        )

    async def job(self, asked: dict[str, Any]) -> dict[str, Any]:
        """One job whole."""
        sheet = await self._parts.journal.read(views.job_sheet, str(asked.get("id")))
        if sheet is None:
            raise RelayError(f"There is no job {asked.get('id')} here.", code="unknown_job", hint="relay receiver jobs")
        return sheet

    async def cancel(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Cancel a queued or running job."""
        job = await self._runner.ask(lambda: self._runner.cancel(str(asked.get("id")), str(asked.get("who"))))
        self._changed()
        return views.job_view(job)

    async def settle(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Settle an unknown job on a person's word; what it left running is ended first."""
        job_id, verb, who, text = (
            str(asked.get("id")),
            settle.Verb(str(asked.get("how"))),
            str(asked.get("who")),
            asked.get("text"),
        )

        async def settled() -> dict[str, Any]:
            job = await self._parts.journal.read(settle.check, job_id, verb, text=text)
            ended = await leftovers.end_beside(self._parts, job, who=who)
            job = await self._parts.write(
                settle.settle,
                job_id,
                verb,
                channel=self._parts.binding.channel,
                text=text,
                reason=asked.get("reason"),
                who=who,
                at=self._parts.now(),
            )
            await self._runner.reload()
            return {**views.job_view(job), "ended": ended}

        answer = await self._runner.ask(settled)
        self._changed()
        return answer

    async def settings(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Change settings, from the next job on; `env` and `network` from the next start on."""

        async def changed() -> None:
            await self._parts.write(bindings.change, **asked.get("changes", {}))
            await self._runner.reload()

        await self._runner.ask(changed)
        self._changed()
        return await self.status({})

    def _changed(self) -> None:
        self._runner.kick()
        self._lease.renew_soon()
