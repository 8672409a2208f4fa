from babyagi.taskstore.memory import MemoryTaskStore
from tests.taskstore.contract import TaskStoreContract


class TestMemoryTaskStore(TaskStoreContract):
    async def open_store(self, clock, tmp_path):
        return MemoryTaskStore(clock), lambda: None
