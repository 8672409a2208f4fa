import pytest

from babyagi.index import builtin
from babyagi.index.builtin import BuiltinIndex
from tests.index.contract import VectorIndexContract


@pytest.fixture(params=[builtin.BLOCK_ROWS, 2], ids=["one-block", "several-blocks"])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(builtin, "BLOCK_ROWS", request.param)


@pytest.mark.usefixtures("block_rows")
class TestBuiltinIndex(VectorIndexContract):
    @pytest.fixture
    def index(self):
        return BuiltinIndex()
