import pytest

ROUGH = "select a from s -- why\n"
FORMATTED = "SELECT a FROM s;  -- why\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "rough.cql").write_text(ROUGH)
    (tmp_path / "deep" / "good.cql").write_text(FORMATTED)
    (tmp_path / "other.sql").write_text(ROUGH)
    return tmp_path


def test_scripts_are_formatted_in_place(headrace, folder):
    result = headrace("fmt", folder)
    assert (result.exit_code, result.stdout) == (0, "")
    assert (folder / "rough.cql").read_text() == FORMATTED
    assert (folder / "other.sql").read_text() == ROUGH
    assert "rough.cql" in result.stderr
    assert "1 script is in form" in result.stderr
    assert "2 scripts are in form" in headrace("fmt", folder).stderr


def test_without_files_it_is_this_folder(headrace, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert headrace("fmt").exit_code == 0
    assert (folder / "rough.cql").read_text() == FORMATTED


def test_check_changes_nothing(headrace, folder):
    result = headrace("fmt", "--check", folder)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "would change" in result.stderr
    assert (folder / "rough.cql").read_text() == ROUGH
    assert headrace("fmt", "--check", folder / "deep").exit_code == 0


def test_diff_shows_what_would_change(headrace, folder):
    result = headrace("fmt", "--diff", folder / "rough.cql", folder / "deep" / "good.cql")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[2:] == ["@@ -1 +1 @@", "-select a from s -- why", "+SELECT a FROM s;  -- why"]
    assert (folder / "rough.cql").read_text() == ROUGH
    assert headrace("fmt", "--diff", "--check", folder).exit_code == 1


def test_standard_input_goes_to_standard_output(headrace):
    result = headrace("fmt", "-", input=ROUGH)
    assert (result.exit_code, result.stdout, result.stderr) == (0, FORMATTED, "")
    assert headrace("fmt", "--check", "-", input=ROUGH).exit_code == 1


def test_a_script_that_is_wrong_keeps_all_as_they_are(headrace, folder):
    (folder / "wrong.cql").write_text("select a form s")
    result = headrace("fmt", folder)
    assert result.exit_code == 2
    assert "wrong.cql:1:" in result.stderr
    assert (folder / "rough.cql").read_text() == ROUGH


def test_a_folder_without_scripts_is_a_misuse(headrace, tmp_path):
    result = headrace("fmt", tmp_path)
    assert result.exit_code == 2
    assert "no scripts" in result.stderr
