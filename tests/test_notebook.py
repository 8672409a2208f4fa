"""The notebook among the examples runs from top to bottom."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent.parent / "examples" / "notebook.ipynb"


@pytest.mark.system
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.setenv("BABYAGI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BABYAGI_RESULT_STORE", "builtin")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)

    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()

    shown = "\n".join(
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
    assert "<ObjectiveOutcome: objective 1, finished" in shown
    assert "limits.md:1" in shown and "ResultFound" in shown and "ObjectiveEnded" in shown
