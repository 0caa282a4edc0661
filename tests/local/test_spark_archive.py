"""What `make spark-archive` leaves for spark-submit."""

from pathlib import Path

import pytest

from local.spark import archive

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def test_the_archives_have_the_names_that_the_page_gives_to_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cached = tmp_path / "cached.tar"
    cached.write_bytes(b"packages")
    monkeypatch.setattr(archive, "packages", lambda: cached)
    folder = tmp_path / "spark-archive"

    archive.main(folder)

    files = sorted(folder.iterdir())
    assert sorted(capsys.readouterr().out.split()) == list(map(str, files))
    assert all(f" spark-archive/{file.name}" in PAGE.read_text() for file in files)
    assert (folder / "packages.tar").read_bytes() == b"packages"
