import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from headrace.generate import SCHEMAS, events, parse_options
from headrace.plan.arrow import arrow_schema


def test_csv_on_standard_output(headrace):
    result = headrace("generate", "ticks", "--rows", 3)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "symbol,price,qty,at"
    assert len(lines) == 4


@pytest.mark.parametrize("kind", list(SCHEMAS))
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_what_is_written_is_what_was_generated(headrace, tmp_path, kind, form):
    path = tmp_path / "new" / f"rows.{form}"
    result = headrace("generate", kind, "--rows", 70_000, "--late-share", 0.1, "--seed", 4, "--out", path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "70,000 rows" in result.stderr
    schema = arrow_schema(SCHEMAS[kind])
    wanted = events(kind, parse_options(kind, (("seed", "4"), ("late_share", "0.1"), ("rows", "70000"))), 0, 70_000)
    match form:
        case "parquet":
            table = pyarrow.parquet.read_table(path)
        case "csv":
            table = pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types=schema))
        case "json":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            assert rows[-1].keys() == set(schema.names)
            text = pa.schema([(f.name, pa.string() if pa.types.is_timestamp(f.type) else f.type) for f in schema])
            table = pa.Table.from_pylist(rows, schema=text).cast(schema)
    assert table.combine_chunks().equals(pa.Table.from_batches([wanted]))


def test_bad_options_are_refused(headrace):
    result = headrace("generate", "payments", "--rate", 0)
    assert result.exit_code == 2
    assert "events per second" in result.stderr
    assert headrace("generate", "coins").exit_code == 2


def test_no_rows_is_a_header(headrace):
    assert headrace("generate", "rfid", "--rows", 0).stdout == "kind,id,reader,at\n"


def test_a_file_for_each_type(headrace, tmp_path):
    asked = ("generate", "sequence", "--rows", 2000, "--types", 3, "--pog-share", 0.2, "--late-share", "0.1,C=0.5")
    assert headrace(*asked, "--split-by", "type", "--out", tmp_path / "types").exit_code == 0
    whole = headrace(*asked).stdout.splitlines()
    for kind in "ABC":
        lines = (tmp_path / "types" / f"{kind}.csv").read_text().splitlines()
        assert lines == [whole[0], *(line for line in whole[1:] if line.startswith(kind))]


def test_splitting_needs_a_folder_and_a_column_with_few_values(headrace, tmp_path):
    assert "add --out DIR" in headrace("generate", "rfid", "--split-by", "kind").stderr
    assert "Did you mean 'kind'" in headrace("generate", "rfid", "--split-by", "kin", "--out", tmp_path).stderr
    assert "more than 100 values" in headrace("generate", "rfid", "--split-by", "id", "--out", tmp_path).stderr
