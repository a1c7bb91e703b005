//! Small queries on the tables of TPC-H, such as those of dashboards and applications.

use coscan_sim::Random;

use crate::workload::{StreamQuery, used_key};

/// A query with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmallQuery {
    /// A few words on the query. Queries that differ only in their parameters are of one kind.
    pub kind: &'static str,
    /// The text of the query.
    pub sql: String,
}

impl StreamQuery for SmallQuery {
    fn label(&self) -> String {
        format!("\"{}\"", self.kind)
    }

    fn sql(&self, _: &str) -> String {
        self.sql.clone()
    }
}

/// Draws queries for tables of a scale factor.
pub struct SmallQueries {
    random: Random,
    scale_factor: f64,
}

/// Creates the text of a query from random numbers and the scale factor.
type Draw = fn(&mut SmallQueries) -> String;

/// All kinds of queries.
const KINDS: [(&str, Draw); 12] = [
    ("look up an order", |queries| {
        format!("SELECT * FROM orders WHERE o_orderkey = {}", queries.order_key())
    }),
    ("look up an order's lines", |queries| {
        format!(
            "SELECT l_linenumber, l_quantity, l_extendedprice, l_shipmode FROM lineitem \
             WHERE l_orderkey = {}",
            queries.order_key()
        )
    }),
    ("count by a filter", |queries| {
        let (segment, balance) = (queries.segment(), queries.random.between(0, 9000));
        format!(
            "SELECT count(*) FROM customer \
             WHERE c_mktsegment = '{segment}' AND c_acctbal > {balance}"
        )
    }),
    ("sum by a small filter (Q6)", |queries| {
        let (year, percent) = (queries.random.between(1993, 1997), queries.random.between(2, 9));
        format!(
            "SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem \
             WHERE l_shipdate >= DATE '{year}-01-01' AND l_shipdate < DATE '{}-01-01' \
             AND l_discount BETWEEN 0.0{percent} - 0.01 AND 0.0{percent} + 0.01 AND l_quantity < 24",
            year + 1
        )
    }),
    ("group all lines (Q1)", |queries| {
        let day = queries.random.between(1, 28);
        format!(
            "SELECT l_returnflag, l_linestatus, count(*), sum(l_quantity), sum(l_extendedprice), \
             avg(l_discount) FROM lineitem WHERE l_shipdate <= DATE '1998-08-{day:02}' \
             GROUP BY l_returnflag, l_linestatus"
        )
    }),
    ("group customers", |queries| {
        let nation = queries.random.below(25);
        format!(
            "SELECT c_mktsegment, count(*), avg(c_acctbal) FROM customer \
             WHERE c_nationkey <> {nation} GROUP BY c_mktsegment"
        )
    }),
    ("top orders of a quarter", |queries| {
        let month = queries.month();
        format!(
            "SELECT o_orderkey, o_totalprice, o_orderdate FROM orders \
             WHERE o_orderdate >= {month} AND o_orderdate < {month} + INTERVAL '3' MONTH \
             ORDER BY o_totalprice DESC, o_orderkey LIMIT 10"
        )
    }),
    ("top lines", |queries| {
        let mode = queries.one_of(&["AIR", "RAIL", "SHIP", "TRUCK", "MAIL"]);
        format!(
            "SELECT l_orderkey, l_linenumber, l_extendedprice FROM lineitem \
             WHERE l_shipmode = '{mode}' \
             ORDER BY l_extendedprice DESC, l_orderkey, l_linenumber LIMIT 20"
        )
    }),
    ("filter parts by text", |queries| {
        let metal = queries.one_of(&["BRASS", "COPPER", "NICKEL", "STEEL", "TIN"]);
        let size = queries.random.between(1, 50);
        format!(
            "SELECT p_partkey, p_name, p_retailprice FROM part \
             WHERE p_type LIKE '%{metal}' AND p_size = {size}"
        )
    }),
    ("join two small tables", |queries| {
        let balance = queries.random.between(0, 5000);
        format!(
            "SELECT n_name, count(*), sum(s_acctbal) FROM supplier \
             JOIN nation ON s_nationkey = n_nationkey WHERE s_acctbal > {balance} GROUP BY n_name"
        )
    }),
    ("join lines and parts (Q14)", |queries| {
        let month = queries.month();
        format!(
            "SELECT sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) \
             ELSE 0 END) AS promotion, sum(l_extendedprice * (1 - l_discount)) AS revenue \
             FROM lineitem JOIN part ON l_partkey = p_partkey \
             WHERE l_shipdate >= {month} AND l_shipdate < {month} + INTERVAL '1' MONTH"
        )
    }),
    ("join three tables, top 10 (Q3)", |queries| {
        let (segment, month) = (queries.segment(), queries.month());
        format!(
            "SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate \
             FROM customer JOIN orders ON c_custkey = o_custkey \
             JOIN lineitem ON l_orderkey = o_orderkey WHERE c_mktsegment = '{segment}' \
             AND o_orderdate < {month} AND l_shipdate > {month} \
             GROUP BY l_orderkey, o_orderdate ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10"
        )
    }),
];

impl SmallQueries {
    /// Creates a generator. Equal seeds give equal queries.
    pub fn new(seed: u64, scale_factor: f64) -> Self {
        Self { random: Random::new(seed), scale_factor }
    }

    /// A query of any kind, each equally likely.
    pub fn draw(&mut self) -> SmallQuery {
        let (kind, draw) = *self.random.choose(&KINDS);
        SmallQuery { kind, sql: draw(self) }
    }

    /// One query of each kind.
    pub fn one_of_each(&mut self) -> Vec<SmallQuery> {
        KINDS.into_iter().map(|(kind, draw)| SmallQuery { kind, sql: draw(self) }).collect()
    }

    /// A used key of `orders`.
    fn order_key(&mut self) -> i128 {
        // Eight of 32 keys are used.
        let keys = (4.0 * 1_500_000.0 * self.scale_factor) as u64;
        used_key(i128::from(self.random.below(keys))).max(1)
    }

    fn one_of(&mut self, texts: &[&'static str]) -> &'static str {
        texts[self.random.count(0, texts.len() - 1)]
    }

    fn segment(&mut self) -> &'static str {
        self.one_of(&["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"])
    }

    /// The first day of a month of the years with orders.
    fn month(&mut self) -> String {
        format!("DATE '{}-{:02}-01'", self.random.between(1993, 1997), self.random.between(1, 12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_queries_of_all_kinds() {
        let draw = |seed| {
            let mut queries = SmallQueries::new(seed, 0.1);
            (0..200).map(|_| queries.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let drawn = draw(7);
        for (kind, _) in KINDS {
            let texts: Vec<_> = drawn.iter().filter(|query| query.kind == kind).collect();
            assert!(texts.iter().any(|query| query.sql != texts[0].sql), "{kind}");
        }
    }
}
