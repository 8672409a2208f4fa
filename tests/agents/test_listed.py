"""Which tasks of the list an agent is shown, and that an index of their names keeps up with it."""

from babyagi.agents.listed import CODED_LISTED_TOKENS, NameIndex
from babyagi.llm.prompt import estimate_tokens
from babyagi.tasks import TaskName, TaskStatus


def name(id_, text, status=TaskStatus.DONE):
    return TaskName(id=id_, name=text, status=status, is_lacking=False)


def index_of(*names, max_names=2000):
    index = NameIndex(max_names=max_names)
    index.update(names, event_id=1)
    return index


def ids_of(names):
    return [one.id for one in names]


def long(text):
    """A name that fills a fortieth of the place of all."""
    return f"{text} {'of the old town ' * 4}"


MANY = [name(n, long("Look through the papers")) for n in range(100, 200)]


def test_tasks_that_share_rare_words_with_the_texts_are_shown_then_open_ones_then_the_newest():
    index = index_of(name(1, long("Ask the mayor")), name(2, "Rest", TaskStatus.QUEUED), *MANY)

    chosen = ids_of(index.choose(["The mayor of the old town has papers."]))

    assert chosen[:2] == [1, 2]
    assert 10 < len(chosen) < 30 and chosen[2:] == [*range(202 - len(chosen), 200)]


def test_of_equally_near_tasks_the_open_ones_come_first_then_the_newest():
    near = [
        name(n, long("Paint the barn"), (TaskStatus.DONE, TaskStatus.QUEUED)[n % 2])
        for n in range(1, 91)
    ]
    index = index_of(*near, *(name(n, "Rest") for n in range(100, 1000)))

    chosen = index.choose(["a barn"])

    assert 10 < len(chosen) < 45
    assert chosen == [one for one in near if one.status is TaskStatus.QUEUED][-len(chosen) :]


def test_where_names_have_digits_few_of_the_others_are_shown():
    index = index_of(*(name(n, f"Read entry K-{n}") for n in range(1, 101)))

    chosen = index.choose(["Nothing of the kind."])

    assert ids_of(chosen) == [*range(101 - len(chosen), 101)]
    assert sum(estimate_tokens(one.name) for one in chosen) < CODED_LISTED_TOKENS


def test_tasks_that_are_planned_from_are_neither_shown_nor_counted():
    index = index_of(*(name(n, long("Ask the mayor")) for n in (1, 2, 3, 4)), *MANY[:20])

    # a word of four names in 24 is a frequent one, a word of three names never is
    assert 1 not in ids_of(index.choose(["the mayor"]))
    assert ids_of(index.choose(["the mayor"], without={2, 999}))[:3] == [1, 3, 4]
    assert ids_of(index.names(without={1, 2, *range(102, 999)})) == [3, 4, 100, 101]


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
