"""Put first on a process's path, this lets its wall clock say what the file JUMPING_CLOCK adds to
the time, in seconds.

`libfaketime` cannot be used: where it leaves the monotonic clock alone, Python's `time.sleep` fails
with EINVAL.
"""

import datetime
import os
import time
from pathlib import Path

_time = time.time
_offset = Path(os.environ["JUMPING_CLOCK"])


def _jumping_time():
    return _time() + float(_offset.read_text())


class _JumpingDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(_jumping_time(), tz)


time.time = _jumping_time
datetime.datetime = _JumpingDatetime  # type: ignore[misc]
