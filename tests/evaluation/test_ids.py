"""Where ids stand: the same as a dict of Python's own, in less memory."""

from hypothesis import given
from hypothesis import strategies as st

from snne_guard.evaluation.recording.ids import IdPlaces

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "put"]), st.text(max_size=2), st.integers(0, 99)),
    max_size=60,
)


@given(steps=STEPS, recent=st.integers(1, 8))
def test_it_is_a_dict(steps: list[tuple[str, str, int]], recent: int) -> None:
    places, oracle = IdPlaces(recent=recent), dict[str, int]()
    for kind, text, place in steps:
        if kind == "add":
            assert places.add(text, place) == oracle.get(text)
            oracle.setdefault(text, place)
        else:
            places.put(text, place)
            oracle[text] = place
    assert len(places) == len(oracle)
    for text in {*oracle, "a", "b", "other"}:
        assert places.get(text) == oracle.get(text)
        assert (text in places) == (text in oracle)


def test_it_takes_sixteen_bytes_an_id() -> None:
    places = IdPlaces(recent=4)
    for number in range(50):
        places.add(str(number), number)
    assert places._ids.nbytes + places._places.nbytes == 16 * 48


def test_half_a_surrogate_pair_is_an_id_too() -> None:
    places = IdPlaces()
    places.add("\ud800", 0)
    assert "\ud800" in places
    assert "\ud801" not in places
