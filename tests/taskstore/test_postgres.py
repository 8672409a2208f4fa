import pytest

from babyagi.taskstore.offload import ThreadOffload
from babyagi.taskstore.sql import open_postgres
from tests.taskstore.contract import TaskStoreContract


class TestPostgresTaskStore(TaskStoreContract):
    @pytest.fixture(autouse=True)
    def database(self, postgres_url):
        self.url = postgres_url

    async def open_store(self, clock, tmp_path):
        offload = ThreadOffload(n_threads=3)
        return await open_postgres(self.url, clock=clock, offload=offload), offload.close
