"""What the simulation has found, each as the shortest history that shows it."""

import asyncio
from pathlib import Path

from support_parts import Bench, message

from relay_receiver.client.errors import HubError


def run(scenario: object) -> None:
    asyncio.run(scenario)  # type: ignore[arg-type]


def test_a_person_frees_a_run_at_the_hub_while_its_answer_is_on_its_way(tmp_path: Path) -> None:
    """The answer is posted: the request would wait for ever for another one."""
    freed = HubError("A person has settled this run.", status=409, code="run_settled", data={"outcome": "not-accepted"})

    async def scenario() -> None:
        async with Bench(tmp_path) as b:
            b.hub.fail["post"] = [freed]
            b.arrive(message(1))
            await b.until(lambda: b.jobs() == {"m1": "done"})
            assert ["run" in post for post in b.hub.posts()] == [True, False]

    run(scenario())
