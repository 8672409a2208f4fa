import pytest

from babyagi.resultstore.builtin import BuiltinIndex
from tests.resultstore.contract import VectorIndexContract


class TestBuiltinIndex(VectorIndexContract):
    @pytest.fixture
    def index(self):
        return BuiltinIndex()
