"""The table and the twelve panels of a dashboard on it."""

# 10 million trips in row groups of 262,144, made from their numbers alone.
ROWS = 10_000_000
TABLE = f"""
COPY (
    SELECT
        value AS id,
        to_timestamp_seconds(1767225600 + value * 3 + (value * 7919 / 65536 % 3600)) AS begins,
        CAST((value * 2654435761 / 65536 % 1000003) AS DOUBLE) / 1000003 * 30 AS kilometres,
        CAST(300 + (value * 40503 / 65536 % 4000) AS BIGINT) AS fare_cents,
        CAST((value * 69069 / 65536 % 500) AS BIGINT) AS tip_cents,
        'city ' || CAST((value * 110351525 / 65536 % 40) AS VARCHAR) AS city,
        CASE (value * 22695477 / 65536 % 5) WHEN 0 THEN 'cash' WHEN 1 THEN 'card' ELSE 'app' END AS payment,
        CAST(1 + (value * 134775813 / 65536 % 6) AS BIGINT) AS passengers,
        CAST((value * 16807 / 65536 % 20000) AS BIGINT) AS driver
    FROM range(0, {ROWS})
) TO '{{file}}' STORED AS PARQUET OPTIONS ('format.max_row_group_size' '262144')
"""

# In the SQL that coscan, DataFusion, DuckDB and polars have in common.
PANELS = {
    "trips and income": "SELECT count(*) AS trips, sum(fare_cents) AS cents FROM trips",
    "income by city": "SELECT city, sum(fare_cents) AS cents FROM trips GROUP BY city ORDER BY cents DESC, city LIMIT 10",
    "trips by payment": "SELECT payment, count(*) AS trips FROM trips GROUP BY payment ORDER BY payment",
    "tips by payment": "SELECT payment, avg(tip_cents) AS cents FROM trips GROUP BY payment ORDER BY payment",
    "long trips": "SELECT city, count(*) AS trips FROM trips WHERE kilometres > 25 GROUP BY city ORDER BY city",
    "fare by passengers": "SELECT passengers, avg(fare_cents) AS cents FROM trips GROUP BY passengers ORDER BY passengers",
    "best drivers": "SELECT driver, sum(fare_cents) AS cents FROM trips GROUP BY driver ORDER BY cents DESC, driver LIMIT 5",
    "cash by city": "SELECT city, sum(fare_cents) AS cents FROM trips WHERE payment = 'cash' GROUP BY city ORDER BY city",
    "distance by city": "SELECT city, avg(kilometres) AS kilometres FROM trips GROUP BY city ORDER BY city",
    "large tips": "SELECT count(*) AS trips FROM trips WHERE tip_cents > 400",
    "full cars": "SELECT payment, count(*) AS trips FROM trips WHERE passengers = 6 GROUP BY payment ORDER BY payment",
    "short and dear": "SELECT count(*) AS trips, max(fare_cents) AS cents FROM trips WHERE kilometres < 1 AND fare_cents > 4000",
}
