"""Documents, tasks, members and search in the console."""

import re
from collections.abc import Iterator

import pytest
from support_console import Browser, operation, shown
from support_hub import LiveHub, Member

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    made = LiveHub(tmp_path_factory.mktemp("hub") / "data").start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def owner(hub: LiveHub) -> Member:
    return hub.owner()


@pytest.fixture
def lab(hub: LiveHub, owner: Member) -> str:
    return hub.channel(owner, f"lab {operation()}")


def made_doc(browser: Browser, lab: str, content: str = "first") -> str:
    said = {"channel": lab, "title": f"Notes {SCRIPT}", "content": content, "operation": operation()}
    answer = browser.post("/docs", said)
    assert answer.status_code == 303
    return str(answer.headers["location"].partition("?")[0])


def test_a_document_is_made_read_changed_and_has_a_history(browser: Browser, lab: str) -> None:
    path = made_doc(browser, lab, f"# One\n\n{SCRIPT} [x](javascript:alert(1)) **bold**\n")
    page = browser.get(path).text
    assert SCRIPT not in page
    assert "javascript:" not in page.replace("[x](javascript:alert(1))", "")
    assert "<strong>bold</strong>" in page
    browser.follow(path, {"rev": "1", "title": "Notes", "content": "second"})
    assert "second" in browser.get(path).text
    listed = browser.get(f"{path}/history").text
    assert "Revision 1" in listed
    assert "Revision 2" in listed
    assert "<strong>bold</strong>" in browser.get(f"{path}?rev=1").text
    assert browser.get(f"{path}?rev=3").status_code == 404


def test_two_changes_at_once_lose_nothing_and_say_so(browser: Browser, lab: str) -> None:
    path = made_doc(browser, lab)
    browser.follow(path, {"rev": "1", "title": "Notes", "content": "theirs"})
    answer = browser.post(path, {"rev": "1", "title": "Notes", "content": "mine </textarea>"})
    assert answer.status_code == 409
    assert "was changed since you read it" in shown(answer.text)
    assert "mine &lt;/textarea&gt;</textarea>" in answer.text
    assert "theirs" in answer.text
    assert 'name="rev" value="2"' in answer.text
    browser.follow(path, {"rev": "2", "title": "Notes", "content": "mine"})
    assert "theirs" in browser.get(f"{path}?rev=2").text


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"title": ""}, 422),
        ({"title": "two\nlines"}, 422),
        ({"content": "x" * 300_000}, 413),
        ({"rev": "soon"}, 422),
        ({"rev": "9"}, 422),
    ],
)
def test_what_does_not_fit_stays_in_the_form(browser: Browser, lab: str, said: dict[str, str], status: int) -> None:
    path = made_doc(browser, lab)
    answer = browser.post(path, {"rev": "1", "title": "Kept", "content": "kept text", **said})
    assert answer.status_code == status
    assert said.get("content", "kept text") in answer.text
    assert "first" in browser.get(path).text


def test_a_document_is_put_away_and_taken_out_again(browser: Browser, lab: str) -> None:
    path = made_doc(browser, lab)
    browser.follow(path, {"rev": "1", "archived": "true"})
    assert path not in browser.get(f"/docs?channel={lab}").text
    assert path in browser.get(f"/docs?channel={lab}&archived=true").text
    browser.follow(path, {"rev": "2", "archived": "false"})
    assert path in browser.get(f"/docs?channel={lab}").text


def test_a_task_goes_from_to_do_to_done(browser: Browser, owner: Member, lab: str) -> None:
    said = {"channel": lab, "title": f"Mend {SCRIPT}", "operation": operation()}
    browser.follow("/tasks", said)
    browser.follow("/tasks", said)
    (task,) = owner.get("/tasks", channel=lab)["tasks"]
    page = browser.get(f"/tasks?channel={lab}").text
    assert SCRIPT not in page
    assert f"/tasks/{task['id']}" in page
    browser.follow(f"/tasks/{task['id']}", {"rev": "1", "state": "doing", "following": "/tasks"})
    change = {"rev": "2", "title": "Mended", "description": "*soon*", "state": "done", "assignee": owner.id}
    assert "<em>soon</em>" in browser.follow(f"/tasks/{task['id']}", change).text
    now = owner.get(f"/tasks/{task['id']}")
    assert (now["state"], now["title"], now["assignee"]["id"]) == ("done", "Mended", owner.id)
    late = browser.post(f"/tasks/{task['id']}", {**change, "title": "Mine"})
    assert late.status_code == 409
    assert 'value="Mine"' in late.text
    browser.follow(f"/tasks/{task['id']}", {"rev": "3", "assignee": ""})
    assert owner.get(f"/tasks/{task['id']}")["assignee"] is None


def test_a_code_is_shown_once_and_lets_somebody_in(hub: LiveHub, browser: Browser, lab: str) -> None:
    page = browser.post("/members/invite", {"channel": lab, "kind": "agent"})
    assert page.status_code == 200
    assert page.headers["cache-control"] == "no-store"
    found = re.search(rf"relay connect {re.escape(hub.url)}#(\S+) --name", shown(page.text))
    assert found is not None
    joined = hub.join(found[1], "newcomer")
    assert "newcomer" in browser.get("/members").text
    assert [each["id"] for each in joined.get("/channels")["channels"]] == [lab]
    assert found[1] not in browser.get("/members").text


def test_a_channel_is_made_and_a_name_is_taken_once(browser: Browser) -> None:
    name = f"Ops {operation()}"
    assert name in browser.follow("/channels", {"name": name}).text
    again = browser.post("/channels", {"name": name})
    assert again.status_code == 409
    assert "alert" in again.text


def test_search_finds_what_this_person_may_read_and_marks_it(
    hub: LiveHub, browser: Browser, owner: Member, lab: str
) -> None:
    word = f"zebra{operation()}"
    owner.post("/messages", {"channel": lab, "kind": "message", "content": f"a <b>{word}</b>", "operationId": word})
    page = browser.get(f"/search?q={word}").text
    assert f"<mark>{word}</mark>" in page
    assert f"<b>{word}" not in page
    eve = hub.agent(owner, hub.channel(owner, f"other {operation()}"), "eve", person=True)
    with Browser(hub) as other:
        assert word not in other.sign_in(eve).get("/search?q=zebra").text


@pytest.mark.parametrize(
    "query", ['"', "a AND", "NEAR(", "*", "'; --", "col:x", "^", "\u202e", "x" * 5000, "-", "(a OR"]
)
def test_whatever_is_typed_is_a_search(browser: Browser, query: str) -> None:
    assert browser.http.get("/search", params={"q": query}).status_code == 200


def test_what_is_not_ones_own_is_not_there(hub: LiveHub, browser: Browser, owner: Member, lab: str) -> None:
    path = made_doc(browser, lab)
    task = owner.post("/tasks", {"channel": lab, "title": "T", "operationId": operation()})["id"]
    eve = hub.agent(owner, hub.channel(owner, f"other {operation()}"), "eve", person=True)
    with Browser(hub) as other:
        other.sign_in(eve)
        for each in (path, f"{path}/edit", f"{path}/history", f"/tasks/{task}", f"/docs?channel={lab}"):
            assert other.get(each).status_code == 404, each
        assert other.post(path, {"rev": "1", "content": "x"}).status_code == 404
        assert other.post(f"/tasks/{task}", {"rev": "1", "state": "done"}).status_code == 404
        assert other.post("/members/invite", {"channel": lab, "kind": "agent"}).status_code == 404
    assert "first" in browser.get(path).text


def test_an_invitation_tells_nobody_the_name_under_which_a_person_is_here(
    hub: LiveHub, browser: Browser, lab: str
) -> None:
    port = hub.url.rpartition(":")[2]
    own = {"host": f"relay-abc.localhost:{port}", "origin": f"http://relay-abc.localhost:{port}"}
    page = browser.post("/members/invite", {"channel": lab, "kind": "agent"}, headers=own)
    assert page.status_code == 200
    assert f"relay connect http://localhost:{port}#" in page.text
    assert "relay-abc" not in page.text
