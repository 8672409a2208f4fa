"""Adapters of vector stores, and the translation of errors that those on a server share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from babyagi.errors import BabyagiError, IndexUnavailableError


@contextmanager
def translating_server(
    vendor: str,
    fix: str,
    timeout_s: float,
    unavailable: Callable[[str], BabyagiError],
    explain: Callable[[Exception], BabyagiError],
) -> Iterator[None]:
    """Translate the exceptions of a vendor's library, its server and the network into errors of
    this program.

    Args:
        fix: what to do if the library cannot be imported.
        unavailable: makes the error for a server that did not answer within `timeout_s`.
        explain: makes the error for any other exception.
    """
    try:
        yield
    except BabyagiError:
        raise
    except ImportError as error:
        what = f"{vendor} cannot be imported"
        raise IndexUnavailableError(what, why=str(error), fix=fix, guide="results") from error
    except TimeoutError as error:
        raise unavailable(str(error) or f"no answer within {timeout_s:g} s") from error
    except Exception as error:
        raise explain(error) from error
