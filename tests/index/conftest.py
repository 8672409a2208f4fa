import pytest


@pytest.fixture
def many_results(monkeypatch):
    """However few results a test has, they count as too many to compare all of them."""
    monkeypatch.setattr("babyagi.index.search.MAX_COMPARED", 0)
