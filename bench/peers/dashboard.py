"""The dashboard: lineitem in a file for each month, and the panels that are asked of it."""

from queries import Query

TABLE, PARTITION = "lineitem_by_month", "ship_month"
FIRST_YEAR = 1995
MONTHS = [f"{FIRST_YEAR + index // 12}-{index % 12 + 1:02}" for index in range(40)]
"""The months that are kept. Each is a file of about 75,000 rows at scale 1."""
MONTHS_AT_FIRST = 31
"""Those that are there from the start; the others arrive one after another."""

REVENUE = "sum(l_extendedprice * (1 - l_discount))"

PANELS = {
    "total": f"SELECT count(*), {REVENUE} FROM {TABLE}",
    "revenue by month": f"SELECT ship_month, {REVENUE} FROM {TABLE} GROUP BY ship_month",
    "quantity by ship mode": f"SELECT l_shipmode, sum(l_quantity), count(*) FROM {TABLE} GROUP BY l_shipmode",
    "returns by month":
        f"SELECT ship_month, count(*), {REVENUE} FROM {TABLE} WHERE l_returnflag = 'R' GROUP BY ship_month",
    "price and discount by month":
        f"SELECT ship_month, avg(l_extendedprice), avg(l_discount) FROM {TABLE} GROUP BY ship_month",
    "late by month":
        f"SELECT ship_month, count(*) FROM {TABLE} WHERE l_receiptdate > l_commitdate GROUP BY ship_month",
    "late by ship mode":
        f"SELECT l_shipmode, count(*) FROM {TABLE} WHERE l_receiptdate > l_commitdate GROUP BY l_shipmode",
    "instructions": f"SELECT l_shipinstruct, l_shipmode, count(*) FROM {TABLE} GROUP BY l_shipinstruct, l_shipmode",
    "pricing summary":
        f"SELECT l_returnflag, l_linestatus, sum(l_quantity), {REVENUE}, avg(l_discount), count(*) FROM {TABLE} "
        "GROUP BY l_returnflag, l_linestatus",
    "large orders by month":
        f"SELECT ship_month, count(*), max(l_extendedprice) FROM {TABLE} WHERE l_quantity >= 45 GROUP BY ship_month",
    "discounted revenue":
        f"SELECT sum(l_extendedprice * l_discount) FROM {TABLE} "
        "WHERE l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "tax since 1997": f"SELECT ship_month, sum(l_extendedprice * l_tax) FROM {TABLE} WHERE ship_month >= '1997-01' "
                      "GROUP BY ship_month",
    "top suppliers": f"SELECT l_suppkey, {REVENUE} AS revenue FROM {TABLE} GROUP BY l_suppkey "
                     "ORDER BY revenue DESC, l_suppkey LIMIT 10",
    "parts sold": f"SELECT count(DISTINCT l_partkey) FROM {TABLE}",
}


def panels(refresh: int) -> list[Query]:
    """All panels, as one refresh asks them."""
    return [Query(name, sql, refresh) for name, sql in PANELS.items()]
