"""What a write from a browser must prove: that a page of this hub sent it, and that page was this person's.

Origin is asked of every write, the sign-in too: current browsers send it with each POST. One that comes without is
taken only where the browser itself says `Sec-Fetch-Site: same-origin`. (A page that forbids all referrers makes
browsers send `Origin: null`, which counts as foreign; so pages here keep the referrer within the hub.)
"""

import hmac

from starlette.datastructures import Headers

from relay_receiver.hub.errors import forbidden

FIELD = "csrf"
_SAME = "same-origin"


def check_origin(headers: Headers) -> None:
    """Refuse a write that no page of this hub sent; that an Origin is this hub's was checked at the gate.

    Raises:
        Refusal: 403.
    """
    site = headers.get("sec-fetch-site")
    if site not in {None, _SAME}:
        raise forbidden("This hub takes what its own pages send, and nothing else.", "origin_not_allowed")
    if headers.get("origin") is None and site != _SAME:
        raise forbidden("The browser did not say which page sent this.", "origin_missing")


def check_token(given: str, expected: str) -> None:
    """Refuse a form that was not made for this sign-in.

    Raises:
        Refusal: 403.
    """
    if not hmac.compare_digest(given.encode(), expected.encode()):
        raise forbidden("This form is of another sign-in; load the page again.", "csrf")
