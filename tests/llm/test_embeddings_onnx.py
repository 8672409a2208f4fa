"""Chroma's own embedding model: from files on this machine, fetched only when a person has chosen
it."""

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

from babyagi.errors import IndexUnavailableError, SettingsError
from babyagi.index.hashing import HashEmbedder
from babyagi.llm.embeddings import OnnxEmbedder, fetch_files, missing_files
from tests.llm.embedder_contract import LocalEmbedderContract, cosine
from tests.llm.onnx_files import make_archive, make_files

REAL_FOLDER = ONNXMiniLM_L6_V2.DOWNLOAD_PATH
HAS_REAL_FILES = not missing_files()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where Chroma looks for the files in this test; there are none."""
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path / "all-MiniLM-L6-v2")
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", "http://127.0.0.1:1/onnx.tar.gz")
    monkeypatch.setattr(ONNXMiniLM_L6_V2._download.retry, "sleep", lambda seconds: None)
    return tmp_path / "all-MiniLM-L6-v2"


class Source:
    """A server that answers every request with `body`, of which it says that it has `length`
    bytes."""

    def __init__(self, body, *, status=200, length=None):
        source = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                source.n_requests += 1
                self.send_response(status)
                self.send_header("content-length", str(len(body) if length is None else length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.n_requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/onnx.tar.gz"


def open_embedder():
    return OnnxEmbedder(offload=asyncio.to_thread)


class OnnxContract(LocalEmbedderContract):
    @pytest.fixture
    def embedder(self):
        return open_embedder()

    @pytest.fixture
    def others(self):
        return [HashEmbedder(384)]

    @property
    def making(self):
        return (
            "from pathlib import Path\n"
            "from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2\n"
            f"ONNXMiniLM_L6_V2.DOWNLOAD_PATH = Path({str(ONNXMiniLM_L6_V2.DOWNLOAD_PATH)!r})\n"
            "from babyagi.llm.embeddings import OnnxEmbedder\n"
            "embedder = OnnxEmbedder(offload=asyncio.to_thread)"
        )


class TestOnnxEmbedder(OnnxContract):
    """With a tiny model in the same files."""

    @pytest.fixture(autouse=True)
    def files(self, folder):
        make_files(folder)


@pytest.mark.skipif(
    not HAS_REAL_FILES,
    reason=f"the files of all-MiniLM-L6-v2 are not in {REAL_FOLDER}, and no test fetches them",
)
@pytest.mark.timeout(600)
class TestOnnxEmbedderOnItsRealFiles(OnnxContract):
    async def test_a_paraphrase_is_near(self, embedder):
        asked, same, other = await self.embed(
            embedder,
            [
                "At what time can I visit the gallery?",
                "The museum opens at nine.",
                "Bread is baked.",
            ],
        )

        assert cosine(asked, same) > cosine(asked, other) + 0.1


# -- the files
# --------------------------------------------------------------------------------------------------


async def test_without_its_files_it_is_in_trouble_and_fetches_nothing(folder, monkeypatch):
    with Source(b"") as source:
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", source.url)
        embedder = open_embedder()

        with pytest.raises(IndexUnavailableError, match="chroma-onnx cannot be used") as caught:
            await embedder.embed(["x"])

    assert "model.onnx" in caught.value.why and str(folder) in caught.value.why
    assert "start again with BABYAGI_EMBEDDING_MODEL=chroma-onnx" in caught.value.fix
    assert source.n_requests == 0 and not folder.exists()


@pytest.mark.system
def test_neither_an_env_file_nor_other_programs_variables_keep_the_files_from_being_looked_for(
    tmp_path,
):
    (tmp_path / ".env").write_bytes(b"NAME=\xff\xfe\nMIGRATIONS=none\n")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path.cwd()),
        "MIGRATIONS": "1",
    }
    command = [
        sys.executable,
        "-c",
        "from babyagi.llm.embeddings import missing_files; print(missing_files())",
    ]

    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0 and "model.onnx" in done.stdout, done.stderr


async def test_it_works_as_soon_as_its_files_are_there(folder):
    embedder = open_embedder()
    with pytest.raises(IndexUnavailableError):
        await embedder.embed(["x"])

    make_files(folder)

    assert len((await embedder.embed(["the museum"]))[0]) == 1


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
async def test_damaged_files_are_trouble_that_says_what_to_do(folder, name):
    make_files(folder)
    whole = (folder / "onnx" / name).read_bytes()
    (folder / "onnx" / name).write_bytes(whole[: len(whole) // 2])

    with pytest.raises(IndexUnavailableError) as caught:
        await open_embedder().embed(["x"])

    assert f"remove {folder / 'onnx'} if its files are damaged" in caught.value.fix


async def test_the_files_are_fetched_once_and_said_so_before(folder, tmp_path, monkeypatch, capfd):
    archive = make_archive(tmp_path / "onnx.tar.gz", tmp_path / "made")
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_MODEL_SHA256", hashlib.sha256(archive).hexdigest())
    told = []
    with Source(archive) as source:
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", source.url)
        fetch_files(lambda notice: told.append((notice, source.n_requests)))
        fetch_files(lambda notice: told.append((notice, source.n_requests)))

    assert told == [
        (f"the embedding model chroma-onnx is downloaded once (80 MB) into {folder / 'onnx'}", 0)
    ]
    assert source.n_requests == 1
    assert len((await open_embedder().embed(["the museum"]))[0]) == 1
    assert capfd.readouterr() == ("", "")  # no bar of its own


@pytest.mark.parametrize(
    ("body", "more", "n_requests", "why"),
    [
        (b"not the archive", {}, 3, "SHA256"),
        (b"no such key", {"status": 404}, 3, "SHA256"),
        (b"the beginning", {"length": 80_000_000}, 1, "RemoteProtocolError"),
    ],
    ids=["wrong checksum", "not found", "cut"],
)
def test_a_fetch_that_fails_says_what_to_do_and_the_next_one_begins_anew(
    folder, tmp_path, monkeypatch, body, more, n_requests, why
):
    with Source(body, **more) as source:
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", source.url)
        with pytest.raises(
            SettingsError, match="chroma-onnx is not on this machine and could not be fetched"
        ) as caught:
            fetch_files()

    assert why in caught.value.why and source.n_requests == n_requests
    assert (
        str(folder / "onnx") in caught.value.fix
        and "BABYAGI_EMBEDDING_MODEL=hash" in caught.value.fix
    )
    assert missing_files()
    archive = make_archive(tmp_path / "onnx.tar.gz", tmp_path / "made")
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_MODEL_SHA256", hashlib.sha256(archive).hexdigest())
    with Source(archive) as source:
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", source.url)
        fetch_files()
    assert not missing_files()


def test_a_source_that_nobody_serves_is_said(folder, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(
            ONNXMiniLM_L6_V2,
            "MODEL_DOWNLOAD_URL",
            f"http://127.0.0.1:{taken.getsockname()[1]}/onnx.tar.gz",
        )
        with pytest.raises(SettingsError) as caught:
            fetch_files()

    assert "ConnectError" in caught.value.why
