"""A memo gives a value again while its facts are the same and its time has not come, and never otherwise."""

from autoscaler.domain.memo import FOR_EVER, Memo


def asked(memo, facts, now, *, value, not_before=FOR_EVER):
    return memo.value("name", facts, now, lambda: (value, not_before))


def test_a_value_is_given_again_while_its_facts_are_the_same():
    memo = Memo()
    assert asked(memo, ("a", 1.0), 10.0, value="first") == "first"
    assert asked(memo, ("a", 1.0), 20.0, value="second") == "first"
    assert asked(memo, ("a", 2.0), 30.0, value="third") == "third"
    assert (memo.asked, memo.found) == (3, 1)


def test_a_value_is_worked_out_again_when_its_time_has_come():
    memo = Memo()
    asked(memo, "facts", 10.0, value="first", not_before=60.0)
    assert asked(memo, "facts", 59.0, value="second") == "first"
    assert asked(memo, "facts", 60.0, value="third") == "third"


def test_a_value_says_nothing_of_the_time_before_it():
    memo = Memo()
    asked(memo, "facts", 10.0, value="first")
    assert asked(memo, "facts", 9.0, value="second") == "second"


def test_of_a_group_each_value_follows_from_its_own_facts_and_what_left_is_forgotten():
    memo = Memo()

    def values(facts, now):
        return memo.values("group", facts, now, lambda key, its: (f"{key}{its} at {now}", FOR_EVER))

    assert values({"a": 1, "b": 1}, 0.0) == {"a": "a1 at 0.0", "b": "b1 at 0.0"}
    assert values({"a": 1, "b": 2}, 1.0) == {"a": "a1 at 0.0", "b": "b2 at 1.0"}
    assert values({"b": 2}, 2.0) == {"b": "b2 at 1.0"}
    assert values({"a": 1}, 3.0) == {"a": "a1 at 3.0"}
