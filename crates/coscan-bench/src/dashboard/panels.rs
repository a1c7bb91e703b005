//! The panels: aggregations whose text is the same at each refresh.

use crate::workload::StreamQuery;

/// The table of the panels.
pub(super) const TABLE: &str = "lineitem";

/// A panel, which is one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panel {
    /// A few words on it.
    pub name: &'static str,
    /// The columns and aggregates.
    select: &'static str,
    /// The text after the table.
    rest: &'static str,
}

impl StreamQuery for Panel {
    fn label(&self) -> String {
        format!("\"{}\"", self.name)
    }

    fn sql(&self, table: &str) -> String {
        format!("SELECT {}\nFROM {table}\n{}", self.select, self.rest)
    }
}

impl Panel {
    /// Whether the panel reads a column of the files, whose name is not part of that of another.
    pub(super) fn reads(&self, column: &str) -> bool {
        self.select.contains(column) || self.rest.contains(column)
    }
}

/// All panels. The first one has a row for each file.
pub const PANELS: [Panel; 14] = [
    Panel {
        name: "lines and revenue by day",
        select: "day, count(*) AS lines, sum(l_extendedprice) AS revenue",
        rest: "GROUP BY day ORDER BY day",
    },
    Panel {
        name: "discounted revenue by day",
        select: "day, sum(l_extendedprice * (1 - l_discount)) AS revenue",
        rest: "GROUP BY day ORDER BY day",
    },
    Panel {
        name: "all lines",
        select: "count(*) AS lines, sum(l_quantity) AS quantity, min(l_shipdate) AS first, max(l_shipdate) AS last",
        rest: "",
    },
    Panel {
        name: "quantity by ship mode",
        select: "l_shipmode, sum(l_quantity) AS quantity, avg(l_quantity) AS per_line",
        rest: "GROUP BY l_shipmode ORDER BY l_shipmode",
    },
    Panel {
        name: "revenue by ship mode",
        select: "l_shipmode, sum(l_extendedprice) AS revenue",
        rest: "GROUP BY l_shipmode ORDER BY revenue DESC",
    },
    Panel {
        name: "average discount by status",
        select: "l_returnflag, l_linestatus, avg(l_discount) AS discount, count(*) AS lines",
        rest: "GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
    },
    Panel {
        name: "charges by status",
        select: "l_returnflag, l_linestatus, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge",
        rest: "GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus",
    },
    Panel {
        name: "lines by instruction",
        select: "l_shipinstruct, count(*) AS lines, avg(l_tax) AS tax",
        rest: "GROUP BY l_shipinstruct ORDER BY l_shipinstruct",
    },
    Panel {
        name: "top 5 ways of delivery",
        select: "l_shipinstruct, l_shipmode, sum(l_extendedprice) AS revenue",
        rest: "GROUP BY l_shipinstruct, l_shipmode ORDER BY revenue DESC, l_shipinstruct, l_shipmode LIMIT 5",
    },
    Panel {
        name: "top 10 quantities",
        select: "l_quantity, count(*) AS lines, sum(l_extendedprice) AS revenue",
        rest: "GROUP BY l_quantity ORDER BY revenue DESC, l_quantity LIMIT 10",
    },
    Panel {
        name: "late lines by ship mode",
        select: "l_shipmode, count(*) AS lines",
        rest: "WHERE l_receiptdate > l_commitdate GROUP BY l_shipmode ORDER BY l_shipmode",
    },
    Panel {
        name: "returned lines by day",
        select: "day, count(*) AS lines, sum(l_quantity) AS quantity",
        rest: "WHERE l_returnflag = 'R' GROUP BY day ORDER BY day",
    },
    Panel {
        name: "revenue by discount",
        select: "l_discount, sum(l_extendedprice * l_discount) AS given, count(*) AS lines",
        rest: "GROUP BY l_discount ORDER BY l_discount",
    },
    Panel {
        name: "lines by place in their order",
        select: "l_linenumber, count(*) AS lines, max(l_extendedprice) AS largest",
        rest: "GROUP BY l_linenumber ORDER BY l_linenumber",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_differ_and_say_what_they_read() {
        for (index, panel) in PANELS.iter().enumerate() {
            assert!(!PANELS[..index].iter().any(|other| other.name == panel.name));
            assert!(!PANELS[..index].iter().any(|other| other.sql("t") == panel.sql("t")));
        }
        assert!(PANELS[0].reads("l_extendedprice") && !PANELS[0].reads("l_shipmode"));
        assert!(PANELS[11].reads("l_returnflag"));
    }
}
