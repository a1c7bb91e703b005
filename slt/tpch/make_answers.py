#!/usr/bin/env python3
"""Answers of DuckDB to the 22 queries of TPC-H, one file each, for crates/coscan-bench/tests/tpch_answers.rs.

    pip install duckdb
    coscan bench throughput --scale 0.01 --streams 1 --engines datafusion --data DIRECTORY
    python3 slt/tpch/make_answers.py DIRECTORY

At another scale, answers go to a directory that COSCAN_TPCH_ANSWERS then names:

    coscan bench throughput --scale 1 --streams 1 --engines datafusion --data DIRECTORY
    python3 slt/tpch/make_answers.py DIRECTORY 1 ANSWERS
    COSCAN_TPCH_SCALE=1 COSCAN_TPCH_ANSWERS=ANSWERS cargo test --release --workspace --test integration tpch_answers

DuckDB reads the Parquet files that coscan made, so that both answer over the same rows. Each answer is a line of column
names and a line for each row; values are separated by tabs.
"""

import pathlib
import re
import sys

import duckdb

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERIES = ROOT / "crates/coscan-bench/queries/tpch"
ANSWERS = pathlib.Path(__file__).resolve().parent


def sql_of(template: str, scale: str) -> str:
    """The query with the parameters of the validation run, which its comments state."""
    for name, value in re.findall(r"^-- (\{\w+\}): (.*)$", template, re.MULTILINE):
        if value.endswith(" / scale factor"):
            value = f"{float(value.split()[0]) / float(scale):f}"
        template = template.replace(name, value)
    return template


def text_of(value) -> str:
    return "NULL" if value is None else str(value)


def main(data: pathlib.Path, scale: str = "0.01", answers: pathlib.Path = ANSWERS) -> None:
    answers.mkdir(exist_ok=True)
    connection = duckdb.connect()
    for table in TABLES:
        file = data / f"{table}-sf{scale}.parquet"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{file}')")
    for path in sorted(QUERIES.glob("q*.sql")):
        result = connection.execute(sql_of(path.read_text(), scale))
        names = [column[0] for column in result.description]
        lines = [names] + [[text_of(value) for value in row] for row in result.fetchall()]
        answer = "".join("\t".join(line) + "\n" for line in lines)
        (answers / path.name).with_suffix(".tsv").write_text(answer)
        print(f"{path.stem}: {len(lines) - 1} rows")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [data]:
            main(pathlib.Path(data))
        case [data, scale, answers]:
            main(pathlib.Path(data), scale, pathlib.Path(answers))
        case _:
            sys.exit(__doc__)
