"""What a running receiver asks of a person: each need ends with a line that can be typed as it stands."""

from relay_receiver.receiver import views
from relay_receiver.receiver.situation import Situation


def test_each_need_names_every_part_of_the_line_to_type() -> None:
    situation = Situation(unauthorized=True, foreign_run={"message": "msg_1"})
    status = views.running_status(situation, {"job": None, "needsPerson": []})
    assert {each["what"]: each["next"] for each in status["needsPerson"]} == {
        "unauthorized": "relay connect URL#CODE --name NAME",
        "foreign_run": "relay messages settle msg_1 --abandon --reason TEXT",
    }
