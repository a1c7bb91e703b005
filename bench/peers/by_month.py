"""Writes the files of the dashboard: `by_month.py LINEITEM FOLDER MONTH …`. Runs with the packages of the engines."""

import os
import sys

import duckdb


def write(lineitem: str, folder: str, months: list[str]) -> None:
    """Copies the rows of these months to `FOLDER/ship_month=MONTH/lineitem.parquet`, one file each."""
    connection = duckdb.connect(config={"threads": 1})  # More would change the order of rows.
    for month in months:
        target = f"{folder}/ship_month={month}"
        os.makedirs(target)
        connection.execute(f"""
            COPY (
                SELECT * FROM read_parquet('{lineitem}')
                WHERE l_shipdate >= DATE '{month}-01' AND l_shipdate < DATE '{month}-01' + INTERVAL 1 MONTH
            ) TO '{target}/lineitem.parquet' (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE 131072)""")


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], sys.argv[3:])
