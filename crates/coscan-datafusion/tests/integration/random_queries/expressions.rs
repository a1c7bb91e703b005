//! Random values and conditions on the columns of a relation. Their results depend on no order: sums are exact, and
//! nothing divides.

use crate::random_queries::tables::{Domain, Kind};
use crate::support::Seeded;

/// A column that an expression may use.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its name, with that of its relation.
    pub(crate) sql: String,
    pub(crate) kind: Kind,
    pub(crate) domain: Domain,
}

impl Seeded {
    /// True with this probability, in hundredths.
    pub(crate) fn chance(&mut self, hundredths: u64) -> bool {
        self.below(100) < hundredths
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// A column of this kind, if there is one.
    pub(crate) fn column_of<'a>(
        &mut self,
        kind: Kind,
        columns: &'a [Column],
    ) -> Option<&'a Column> {
        let columns: Vec<_> = columns.iter().filter(|column| column.kind == kind).collect();
        (!columns.is_empty()).then(|| *self.pick(&columns))
    }

    /// A value similar to those of a column.
    pub(crate) fn literal(&mut self, kind: Kind, domain: Domain) -> String {
        match (kind, domain) {
            (Kind::Int, Domain::Parent) => self.below(640).to_string(),
            (Kind::Int, Domain::Item) => self.below(66).to_string(),
            (Kind::Int, Domain::Key) => self.below(150).to_string(),
            (Kind::Int, Domain::None) => self.below(40).to_string(),
            (Kind::Decimal, _) => format!("{}.{:02}", self.below(100), self.below(100)),
            (Kind::Float, _) => format!("{}.{}", self.below(100), self.pick(&[0, 25, 5, 75])),
            (Kind::Text, _) => {
                let text = *self.pick(&["", "a", "b", "x", "ab", "ba", "üx", "xaa", "north"]);
                format!("'{text}'")
            }
            (Kind::Date, _) => {
                let (year, month, day) = (self.below(2), self.below(12), self.below(28));
                format!("DATE '{}-{:02}-{:02}'", 1995 + year, month + 1, day + 1)
            }
            (Kind::Time, _) => {
                let (month, day, hour) = (self.below(3), self.below(28), self.below(24));
                format!("TIMESTAMP '1970-{:02}-{:02}T{hour:02}:00:00'", month + 1, day + 1)
            }
            (Kind::Bool, _) => self.pick(&["true", "false"]).to_string(),
        }
    }

    /// A column, or an expression of columns.
    pub(crate) fn value(&mut self, columns: &[Column]) -> Column {
        let column = self.pick(columns).clone();
        if self.chance(60) {
            return column;
        }
        let Column { sql, kind, domain } = column.clone();
        let sql = match (kind, self.below(4)) {
            (Kind::Int, 0) => format!("{sql} % {}", 2 + self.below(9)),
            (Kind::Int, 1) => format!("{sql} + {}", self.below(9)),
            (Kind::Decimal, 0) => format!("{sql} * 2"),
            (Kind::Float, 0) => format!("{sql} + 0.5"),
            (Kind::Text, 0) => format!("upper({sql})"),
            (Kind::Text, 1) => format!("substr({sql}, 1, 1)"),
            (Kind::Text, 2) => format!("{sql} || 'y'"),
            (Kind::Date, 0) => format!("CAST(date_trunc('month', {sql}) AS DATE)"),
            (Kind::Time, 0) => format!("date_trunc('day', {sql})"),
            (Kind::Bool, 0) => format!("NOT {sql}"),
            (_, 2) => format!("coalesce({sql}, {})", self.literal(kind, domain)),
            _ => {
                let (condition, other) = (self.condition(columns, 1), self.literal(kind, domain));
                format!("CASE WHEN {condition} THEN {sql} ELSE {other} END")
            }
        };
        Column { sql: format!("({sql})"), kind, domain: Domain::None }
    }

    /// An integer, of a column of any kind.
    pub(crate) fn integer(&mut self, columns: &[Column]) -> Column {
        let Column { sql, kind, .. } = self.value(columns);
        let sql = match kind {
            Kind::Int => sql,
            Kind::Decimal | Kind::Float => format!("CAST(floor({sql}) AS BIGINT)"),
            Kind::Text => format!("character_length({sql})"),
            Kind::Date | Kind::Time => {
                format!("CAST(extract({} FROM {sql}) AS BIGINT)", self.pick(&["month", "day"]))
            }
            Kind::Bool => format!("CAST({sql} AS INT)"),
        };
        Column { sql, kind: Kind::Int, domain: Domain::None }
    }

    /// A condition of at most some levels of AND, OR and NOT.
    pub(crate) fn condition(&mut self, columns: &[Column], levels: u32) -> String {
        if levels > 0 && self.chance(45) {
            let left = self.condition(columns, levels - 1);
            return match self.below(5) {
                0 => format!("NOT ({left})"),
                1 | 2 => format!("({left} OR {})", self.condition(columns, levels - 1)),
                _ => format!("({left} AND {})", self.condition(columns, levels - 1)),
            };
        }
        let Column { sql, kind, domain } = self.pick(columns).clone();
        if kind == Kind::Bool && self.chance(50) {
            return sql;
        }
        let comparison = *self.pick(&["<", "<=", ">", ">=", "=", "<>"]);
        match self.below(12) {
            0 => format!("{sql} IS {}NULL", self.pick(&["", "NOT "])),
            1 | 2 => {
                let mut ends = [self.literal(kind, domain), self.literal(kind, domain)];
                // The bounds are mostly from low to high.
                ends.sort_by_key(|end| (end.len(), end.clone()));
                let not = self.pick(&["", "", "NOT "]);
                format!("{sql} {not}BETWEEN {} AND {}", ends[0], ends[1])
            }
            3 | 4 => {
                let count = *self.pick(&[1, 2, 4, 30]);
                let values: Vec<_> = (0..count).map(|_| self.literal(kind, domain)).collect();
                format!("{sql} {}IN ({})", self.pick(&["", "", "NOT "]), values.join(", "))
            }
            5 if kind == Kind::Text => {
                let pattern = *self.pick(&["a%", "%b", "%a%", "_", "x_%", "%"]);
                format!("{sql} {}LIKE '{pattern}'", self.pick(&["", "NOT "]))
            }
            5 if kind == Kind::Int => format!("{sql} % 5 {comparison} {}", self.below(5)),
            6 => {
                let other = self.column_of(kind, columns).expect("there is at least one").clone();
                format!("{sql} {comparison} {}", other.sql)
            }
            7 => format!("({sql} IS DISTINCT FROM {})", self.literal(kind, domain)),
            _ => format!("{sql} {comparison} {}", self.literal(kind, domain)),
        }
    }

    /// An aggregate whose result depends on no order of its rows.
    pub(crate) fn aggregate(&mut self, columns: &[Column]) -> Column {
        let Column { sql, kind, .. } = self.value(columns);
        let is_number = matches!(kind, Kind::Int | Kind::Decimal | Kind::Float);
        let (mut aggregate, kind) = match self.below(10) {
            0 | 1 => ("count(*)".to_owned(), Kind::Int),
            2 => (format!("count({sql})"), Kind::Int),
            3 => (format!("count(DISTINCT {sql})"), Kind::Int),
            // Results computed from averages must be exact, too.
            4 if kind == Kind::Decimal => (format!("CAST(avg({sql}) AS DECIMAL(20, 2))"), kind),
            4 if is_number => (format!("round(avg(CAST({sql} AS DOUBLE)))"), Kind::Float),
            4 | 5 if kind == Kind::Bool => (format!("bool_or({sql})"), kind),
            5 if kind == Kind::Text => {
                (format!("string_agg({sql}, ',' ORDER BY {sql})"), Kind::Text)
            }
            5 if kind == Kind::Int => (format!("bit_xor(CAST({sql} AS BIGINT))"), Kind::Int),
            6 | 7 => (format!("{}({sql})", self.pick(&["min", "max"])), kind),
            _ if is_number => (format!("sum({sql})"), kind),
            8 => {
                let order = self.pick(&["ASC", "DESC", "DESC NULLS LAST"]);
                (format!("first_value({sql} ORDER BY {sql} {order})"), kind)
            }
            _ => (format!("count({sql})"), Kind::Int),
        };
        let takes_filter = aggregate.ends_with(&format!("({sql})")) || aggregate == "count(*)";
        if takes_filter && self.chance(20) {
            aggregate += &format!(" FILTER (WHERE {})", self.condition(columns, 1));
        }
        Column { sql: aggregate, kind, domain: Domain::None }
    }

    /// A window function whose result depends on no order of equal rows. `unique` are columns that together identify
    /// rows, if there are any.
    pub(crate) fn window(&mut self, columns: &[Column], unique: &[String]) -> Column {
        let partition = match self.below(3) {
            0 => String::new(),
            _ => format!("PARTITION BY {} ", self.value(columns).sql),
        };
        let key = self.pick(columns).clone();
        let direction = self.direction();
        let order = format!("ORDER BY {} {direction}", key.sql);
        let Column { sql, kind, .. } = self.value(columns);
        let number = match kind {
            Kind::Int | Kind::Decimal | Kind::Float => (format!("sum({sql})"), kind),
            _ => (format!("max({sql})"), kind),
        };
        if unique.is_empty() || self.chance(30) {
            let (function, kind) = match self.below(6) {
                0 => ("rank()".to_owned(), Kind::Int),
                1 => ("dense_rank()".to_owned(), Kind::Int),
                2 => (format!("count({sql})"), Kind::Int),
                3 => (format!("min({sql})"), kind),
                _ => number,
            };
            let sql = format!("{function} OVER ({partition}{order})");
            return Column { sql, kind, domain: Domain::None };
        }
        let order = format!("{order}, {}", unique.join(", "));
        let (function, kind) = match self.below(7) {
            0 | 1 => ("row_number()".to_owned(), Kind::Int),
            2 => (format!("lag({sql}, {})", 1 + self.below(3)), kind),
            3 => (format!("lead({sql})"), kind),
            4 => (format!("ntile({})", 2 + self.below(4)), Kind::Int),
            5 => (format!("first_value({sql})"), kind),
            _ => number,
        };
        let takes_frame =
            !["row_number", "lag", "lead", "ntile"].iter().any(|name| function.starts_with(name));
        let frame = match (takes_frame, self.below(4)) {
            (false, _) | (true, 0) => String::new(),
            (true, 1) => format!(" ROWS {} PRECEDING", self.below(9)),
            (true, 2) => {
                format!(" ROWS BETWEEN {} PRECEDING AND {} FOLLOWING", self.below(9), self.below(9))
            }
            _ => " ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING".to_owned(),
        };
        let sql = format!("{function} OVER ({partition}{order}{frame})");
        Column { sql, kind, domain: Domain::None }
    }

    pub(crate) fn direction(&mut self) -> &'static str {
        self.pick::<&str>(&["ASC", "ASC", "DESC", "ASC NULLS FIRST", "DESC NULLS LAST"])
    }
}
