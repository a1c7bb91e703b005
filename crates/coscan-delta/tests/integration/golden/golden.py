"""Gets the Delta tables that the tests of the package `deltalake` read, most of them written by Spark and Databricks, and
writes what `deltalake` reads in each of their versions as Parquet: `golden.py DIRECTORY`.

DIRECTORY/tables has the tables, DIRECTORY/expected/TABLE/VERSION.parquet the rows.
"""

import pathlib
import subprocess
import sys
import tarfile

import deltalake
import pyarrow as pa
import pyarrow.parquet

TABLES = "/crates/test/tests/data/"


def fetch(directory):
    """The tables are in the package's sources only."""
    package = f"deltalake=={deltalake.__version__}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-binary", ":all:", "--dest", directory, package], check=True)
    with tarfile.open(next(directory.glob("deltalake-*.tar.gz"))) as sources:
        for member in sources:
            _, is_table, path = member.name.partition(TABLES)
            if is_table:
                member.name = f"tables/{path}"
                sources.extract(member, directory, filter="data")


def write(directory, version, file):
    """Writes the rows of a version, if `deltalake` reads it: variants and lost files it does not."""
    try:
        table = deltalake.DeltaTable(directory, version=version)
        read = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
        pa.parquet.write_table(pa.table(read), file)
    except Exception as error:
        file.unlink(missing_ok=True)
        print(f"{directory.name}, version {version}: {error}")


def main(directory):
    fetch(directory)
    for log in sorted((directory / "tables").glob("**/_delta_log")):
        table = log.parent
        expected = directory / "expected" / table.relative_to(directory / "tables")
        expected.mkdir(parents=True)
        commits = [int(file.stem) for file in log.glob("*.json") if file.stem.isdigit()]
        for version in commits:
            write(table, version, expected / f"{version}.parquet")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
