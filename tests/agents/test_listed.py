"""Which tasks of the list an agent is shown, and that the names kept for it keep up with it."""

from babyagi.agents.listed import MAX_LISTED_TOKENS, ListedNames
from babyagi.llm.prompt import estimate_tokens
from babyagi.tasks import TaskName, TaskStatus


def name(id_, text, status=TaskStatus.DONE):
    return TaskName(id=id_, name=text, status=status, is_lacking=False)


def index_of(*names, max_names=2000):
    index = ListedNames(max_names=max_names)
    index.update(names, event_id=1)
    return index


def ids_of(names):
    return [one.id for one in names]


MANY = [name(n, f"Look through the papers of the year {n}") for n in range(100, 700)]


def test_the_whole_list_is_shown_whatever_the_names_hold():
    assert ids_of(index_of(*MANY[:300]).choose(["Nothing of the kind."])) == [*range(100, 400)]


def test_a_longer_list_begins_with_tasks_that_share_rare_words_then_open_ones_then_the_newest():
    index = index_of(name(1, "Ask the mayor"), name(2, "Rest", TaskStatus.QUEUED), *MANY)

    chosen = index.choose(["The mayor of the town has papers."])

    assert ids_of(chosen)[:2] == [1, 2] and ids_of(chosen)[-1] == 699
    assert len(chosen) < 600
    assert sum(estimate_tokens(one.name) for one in chosen) <= MAX_LISTED_TOKENS


def test_a_small_model_is_shown_a_list_of_at_most_a_fourth_of_its_context():
    chosen = index_of(*MANY).choose([], context_tokens=2000)

    assert len(chosen) > 20 and sum(estimate_tokens(one.name) for one in chosen) <= 500


def test_tasks_that_are_planned_from_are_not_shown():
    index = index_of(*MANY[:4])

    assert ids_of(index.choose([], without={100, 999})) == [101, 102, 103]


def test_a_changed_name_takes_the_place_of_the_old_one_and_the_oldest_are_dropped():
    index = index_of(name(1, "A"), name(2, "B", TaskStatus.QUEUED), max_names=2)

    index.update([name(2, "B"), name(3, "C")], event_id=2)
    index.update([name(1, "A", TaskStatus.QUEUED), name(3, "C", TaskStatus.DEAD)], event_id=3)

    assert index.names() == [name(2, "B"), name(3, "C", TaskStatus.DEAD)]
    assert ids_of(index.choose(["a"])) == [2, 3]


def test_what_was_read_earlier_but_arrives_later_changes_nothing():
    index = index_of(name(1, "A", TaskStatus.QUEUED))

    index.update([name(1, "A", TaskStatus.DONE)], event_id=3)
    index.update([name(1, "A", TaskStatus.RUNNING)], event_id=2)

    assert (index.names(), index.event_id) == ([name(1, "A", TaskStatus.DONE)], 3)
