"""What a page says after something was done: a word in the address, never text that a link could bring along."""

SAID = {
    "sent": "Sent.",
    "withdrawn": "Withdrawn.",
    "cancelling": "Its receiver is asked to cancel it.",
    "signed-in": "You are signed in.",
    "signed-out": "You are signed out.",
    "saved": "Saved.",
    "answered": "Answered.",
    "decided": "Decided; its receiver is told.",
}


def sentence(word: str | None) -> str | None:
    """The sentence of a word; None for any other."""
    return SAID.get(word or "")
