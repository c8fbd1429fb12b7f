"""What a text refers to, with the line that shows it."""

from relay_receiver.wire.references import references


def referred(text: str) -> list[dict[str, str]]:
    """Documents and tasks that a text names, `{kind, id}` each, once; whether they are there was not looked up."""
    return [{"kind": kind, "id": ref} for kind, ref in dict.fromkeys((each.kind, each.id) for each in references(text))]


def lines(text: str) -> list[str]:
    """A line for each of them."""
    return [
        f"refers to {each['kind']}:{each['id']}: relay {each['kind']}s show {each['id']}" for each in referred(text)
    ]


def next_line(text: str) -> str | None:
    """The line that shows the first of them."""
    found = referred(text)
    return f"relay {found[0]['kind']}s show {found[0]['id']}" if found else None
