"""The result store: long results are kept in pages, up to a limit in bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.host.loop.result_store import ResultStore


@given(st.text(min_size=1, max_size=300), st.integers(1, 50))
def test_pages_are_the_whole_text(text: str, size: int) -> None:
    store = ResultStore(size, 10_000)
    name = store.put(text)
    pages = [store.read(name, page) or "" for page in range(1, store.pages(name) + 1)]
    assert "".join(pages) == text
    assert all(0 < len(page) <= size for page in pages)
    for page in (0, -1, len(pages) + 1):
        assert store.read(name, page) is None


@given(
    st.lists(st.text(alphabet="aé漢🎈", min_size=1, max_size=40), min_size=1, max_size=20),
    st.integers(1, 100),
)
def test_it_never_holds_more_than_it_may(texts: list[str], most: int) -> None:
    """In bytes.

    The oldest go first, the newest stays in any case, and names are never given twice.
    """
    store = ResultStore(10, most)
    names = list[str]()
    for text in texts:
        names.append(store.put(text))
        there = [store.pages(name) > 0 for name in names]
        assert there == sorted(there)
        assert there[-1]
        kept = sum(
            len(each.encode()) for each, is_there in zip(texts, there, strict=False) if is_there
        )
        assert kept <= most or sum(there) == 1
        if not all(there):
            first = there.index(True)
            assert kept + len(texts[first - 1].encode()) > most
    assert len(set(names)) == len(names)
    assert store.read("r0", 1) is None
    assert store.pages("nothing") == 0
