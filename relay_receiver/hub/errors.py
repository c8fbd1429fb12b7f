"""What the hub refuses, and how each refusal is told."""

from typing import Any

from relay_receiver.wire.errors import RelayError


class Refusal(RelayError):  # noqa: N818 - a refusal is an answer, not a fault of the hub
    """The hub does not do what it was asked; told as JSON with a fitting status.

    Args:
        status: the HTTP status; 429 carries Retry-After.
        code: a stable word for programs, snake case.
        sentence: one sentence for a person.
        retry_after: seconds after which another try makes sense.
        data: more facts for programs, beside `error` and `code` in the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        /,
        *,
        retry_after: float | None = None,
        **data: Any,  # noqa: ANN401 - JSON values
    ) -> None:
        super().__init__(sentence, code=code, **data)
        self.status = status
        self.retry_after = retry_after

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        return {**self.data, "error": self.sentence, "code": self.code}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that belong to the answer; Retry-After in whole seconds, at least one; Allow from `allow`."""
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, -int(-self.retry_after // 1)))
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status == 405:
            headers["allow"] = str(self.data.get("allow", ""))
        return headers


def malformed(sentence: str, code: str = "malformed", **data: Any) -> Refusal:  # noqa: ANN401 - JSON values
    """400: it cannot be read."""
    return Refusal(400, code, sentence, **data)


def invalid(field: str, sentence: str) -> Refusal:
    """422: it can be read, but the value of `field` cannot be."""
    return Refusal(422, "invalid_value", sentence, field=field)


def unauthorized(sentence: str = "The credential is missing, wrong or no longer valid.") -> Refusal:
    """401: no credential that counts."""
    return Refusal(401, "unauthorized", sentence)


def forbidden(sentence: str, code: str = "forbidden") -> Refusal:
    """403: known, but not allowed to do this."""
    return Refusal(403, code, sentence)


def not_found(what: str = "thing") -> Refusal:
    """404: not there, or not for this member to see."""
    return Refusal(404, "not_found", f"There is no such {what} here.")
