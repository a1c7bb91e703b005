#!/usr/bin/env python3
"""Answers of DuckDB to queries of TPC-DS, one file each, for crates/coscan-bench/tests/tpcds_answers.

    pip install duckdb
    COSCAN_TPCDS_DATA=DIRECTORY cargo test --workspace --test integration tpcds_answers::plain
    python3 slt/tpcds/make_answers.py DIRECTORY

DuckDB reads the Parquet files that the test made, so that both answer over the same rows; the test fails where stored
answers are missing or differ. Each answer is a line of column names and a line for each row; values are separated by
tabs.

The queries are those of the specification with fixed parameters: aliases where DataFusion demands them, and more
columns to sort by where rows could be equal by the order that it states.
"""

import pathlib
import sys

import duckdb

HERE = pathlib.Path(__file__).resolve().parent


def text_of(value) -> str:
    return "NULL" if value is None else str(value)


def main(data: pathlib.Path) -> None:
    connection = duckdb.connect()
    # NULL is sorted as in DataFusion: as the largest value.
    connection.execute("SET default_null_order = 'postgres'")
    for file in sorted(data.glob("*.parquet")):
        connection.execute(f"CREATE VIEW {file.stem} AS SELECT * FROM read_parquet('{file}')")
    for path in sorted(HERE.glob("q*.sql")):
        result = connection.execute(path.read_text())
        names = [column[0] for column in result.description]
        lines = [names] + [[text_of(value) for value in row] for row in result.fetchall()]
        answer = "".join("\t".join(line) + "\n" for line in lines)
        path.with_suffix(".tsv").write_text(answer)
        print(f"{path.stem}: {len(lines) - 1} rows")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
