"""`headrace check --data`: files are opened, Spark is not started."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = """CREATE STREAM sales (id INT, name STRING, at TIMESTAMP) SOURCE FILE('{}') TIMESTAMP BY at DELAY 0;
SELECT id FROM sales;"""


@pytest.fixture
def check(headrace, tmp_path, monkeypatch):
    """Check a script over a directory of files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()

    def run(**files):
        for name, text in files.items():
            (tmp_path / "in" / name).write_text(text)
        (tmp_path / "script.cql").write_text(SCRIPT.format("in"))
        return headrace("check", "script.cql", "--data")

    return run


def test_files_that_fit(check):
    done = check(a="AT,id,name\n2024-01-01,1,x\n", b="name,extra,ID,at\ny,,2,2024-01-01\n")
    assert done.exit_code == 0
    assert "files   2 CSV with headers" in done.stdout
    assert "rows    the first 2 fit" in done.stdout


def test_rows_that_would_be_rejected_are_counted(check):
    done = check(a='{"ID": 1, "at": "2024-01-01"}\n{"id": "two", "at": "2024-01-01"}\n')
    assert done.exit_code == 0
    assert "1 of the first 2 would be rejected, for example a, line 2: column 'id' is INT, and here is \"two\"" in done.stdout


def test_rows_of_which_none_fits_are_an_error(check):
    done = check(a="one,x,2024-01-01\ntwo,y,2024-01-01\n")
    assert done.exit_code == 1
    assert "none of the first 2 rows fits" in done.stderr


def test_a_column_of_another_type(check, tmp_path):
    table = pa.table({"id": pa.array([1], pa.int32()), "name": [5], "at": pa.array([0], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "in" / "part")
    done = check()
    assert done.exit_code == 1
    assert "in part the column 'name' is int64 (BIGINT), and is declared STRING" in done.stderr
    assert "declare it: name BIGINT" in done.stderr
