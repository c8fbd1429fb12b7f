import pytest

from relay_receiver.client.address import is_loopback, normal, split_invitation
from relay_receiver.wire.errors import RelayError


@pytest.mark.parametrize(
    ("typed", "used"),
    [
        ("http://127.0.0.1:7423", "http://127.0.0.1:7423"),
        (" https://Hub.example.org/ ", "https://hub.example.org"),
        ("https://hub.example.org/relay/", "https://hub.example.org/relay"),
        ("http://[::1]:7423", "http://[::1]:7423"),
    ],
)
def test_an_address_has_one_spelling(typed: str, used: str) -> None:
    assert normal(typed) == used


@pytest.mark.parametrize(
    "typed",
    ["", "hub", "hub:7423", "ftp://hub", "http://", "http://u:p@hub", "http://hub?x", "http://hub:99999", "http://["],
)
def test_what_is_no_address_is_refused_without_repeating_it(typed: str) -> None:
    with pytest.raises(RelayError) as caught:
        normal(typed)
    assert caught.value.code == "bad_address"
    assert "u:p" not in caught.value.sentence


def test_an_invitation_has_an_address_and_a_code() -> None:
    assert split_invitation(" http://127.0.0.1:7423#abc \n") == ("http://127.0.0.1:7423", "abc")


@pytest.mark.parametrize("typed", ["", "abc", "http://hub", "http://hub#", "#abc"])
def test_half_an_invitation_is_refused(typed: str) -> None:
    with pytest.raises(RelayError):
        split_invitation(typed)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://127.9.9.9", "http://localhost:7423", "https://[::1]"])
def test_this_machine_is_known(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize("url", ["http://10.0.0.1", "http://hub.example.org", "http://localhost.example.org"])
def test_other_machines_are_not_this_one(url: str) -> None:
    assert not is_loopback(url)
