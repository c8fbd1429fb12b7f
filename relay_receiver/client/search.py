"""Search in a member's channels."""

from relay_receiver.client.calls import Calls, Json


class Search(Calls):
    """The call of `/search`."""

    async def search(
        self, words: str, *, channel: str | None = None, before: int | None = None, limit: int | None = None
    ) -> Json:
        """`{results, next, note}`: what has all the words, the newest first; `before` is the `next` of a page."""
        params = {"q": words, "channel": channel, "before": before, "limit": limit}
        return await self._call("GET", "/search", params=params)
