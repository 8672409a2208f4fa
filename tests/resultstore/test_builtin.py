import pytest

from babyagi.resultstore import builtin
from babyagi.resultstore.builtin import BuiltinIndex
from tests.resultstore.contract import VectorIndexContract


@pytest.fixture(params=[builtin.BLOCK_ROWS, 2], ids=["one-block", "several-blocks"])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(builtin, "BLOCK_ROWS", request.param)


@pytest.mark.usefixtures("block_rows")
class TestBuiltinIndex(VectorIndexContract):
    @pytest.fixture
    def index(self):
        return BuiltinIndex()
