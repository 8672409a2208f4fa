"""A reference implementation of the copy protocol, for tests."""

import hashlib
import time

CHUNK_BYTES = 8 * 1024 * 1024  # the server refuses parts that are larger
BACKOFF_S = (1, 2, 4, 8, 30)


class Copier:
    """Copies one file in chunks and can go on after a break."""

    def __init__(self, target, clock=time.monotonic):
        self.target = target
        self.clock = clock

    def copy(self, path):
        """Return the number of bytes that were sent."""
        sent = self.target.offset(path)
        with open(path, "rb") as file:
            file.seek(sent)
            while chunk := file.read(CHUNK_BYTES):
                self.send(path, chunk)
                sent += len(chunk)
        return sent

    def send(self, path, chunk):
        # a part that arrived twice is known by its digest and dropped by the server
        for wait_s in (*BACKOFF_S, None):
            try:
                return self.target.put(path, chunk, hashlib.sha256(chunk).hexdigest())
            except ConnectionError:
                if wait_s is None:
                    raise
                time.sleep(wait_s)
