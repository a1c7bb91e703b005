//! Random queries: joins of all kinds, subqueries, aggregates, windows, set operations, orders and limits. Every
//! correct engine returns the same rows, except those of a limit whose order does not determine them.

use crate::random_queries::expressions::Column;
use crate::random_queries::tables::{Domain, Kind, TABLES, Table};
use crate::support::Seeded;

/// Relations with more than about this many rows are not joined.
const JOINED_ROWS_MAX: f64 = 4000.0;

/// A query, and how its answers are compared.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) sql: String,
    /// The indexes of the columns by which its rows are ordered.
    pub(crate) order: Vec<usize>,
    /// The query without its limit, if the limit may take any of several rows.
    pub(crate) unlimited: Option<String>,
}

/// A relation to select from.
#[derive(Clone, Debug)]
struct Relation {
    /// The SQL text in FROM.
    sql: String,
    columns: Vec<Column>,
    /// Columns whose values no two rows have in common, if there are any.
    unique: Vec<String>,
    /// The approximate number of rows.
    rows: f64,
}

/// A SELECT with columns `o0`, `o1` and so on.
#[derive(Debug)]
struct Select {
    sql: String,
    columns: Vec<(Kind, Domain)>,
    rows: f64,
}

#[derive(Debug)]
pub(crate) struct Generator {
    random: Seeded,
    names: usize,
    /// Name and columns of common table expressions.
    common: Vec<(String, Select)>,
}

impl Generator {
    pub(crate) fn new(random: Seeded) -> Self {
        Self { random, names: 0, common: Vec::new() }
    }

    pub(crate) fn query(mut self) -> Query {
        let mut with = String::new();
        if self.random.chance(25) {
            let common = self.select(1);
            with = format!("WITH common AS ({}) ", common.sql);
            self.common.push(("common".to_owned(), common));
        }
        let body = if self.random.chance(20) { self.set_operation() } else { self.select(2) };
        let sql = format!("{with}{}", body.sql);
        let places: Vec<usize> = (0..body.columns.len()).collect();
        match self.random.below(10) {
            0..=2 => {
                let order = self.some_of(&places);
                let sql = format!("{sql} {}", self.order_by(&order));
                Query { sql, order, unlimited: None }
            }
            3 | 4 => {
                let order = self.all_of(&places);
                let sql = format!("{sql} {} {}", self.order_by(&order), self.limit());
                Query { sql, order, unlimited: None }
            }
            5 => {
                let order = self.some_of(&places);
                let limited = format!("{sql} {} {}", self.order_by(&order), self.limit());
                Query { sql: limited, order, unlimited: Some(sql) }
            }
            6 => {
                let limited = format!("{sql} {}", self.limit());
                Query { sql: limited, order: Vec::new(), unlimited: Some(sql) }
            }
            _ => Query { sql, order: Vec::new(), unlimited: None },
        }
    }

    fn name(&mut self, prefix: char) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// One to three of the elements, in a random order.
    fn some_of<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let count = 1 + self.random.below(3) as usize;
        let mut all = self.all_of(of);
        all.truncate(count);
        all
    }

    /// All of the elements, in a random order.
    fn all_of<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let mut all = of.to_vec();
        for place in (1..all.len()).rev() {
            all.swap(place, self.random.below(place as u64 + 1) as usize);
        }
        all
    }

    fn order_by(&mut self, places: &[usize]) -> String {
        let keys = places.iter().map(|place| format!("o{place} {}", self.random.direction()));
        format!("ORDER BY {}", keys.collect::<Vec<_>>().join(", "))
    }

    fn limit(&mut self) -> String {
        let limit = *self.random.pick(&[1, 3, 10, 10, 10, 50, 50, 200, 200, 1000, 1000, 0]);
        match self.random.below(3) {
            0 => format!("LIMIT {limit} OFFSET {}", self.random.pick(&[1, 2, 7, 20, 120])),
            _ => format!("LIMIT {limit}"),
        }
    }

    fn set_operation(&mut self) -> Select {
        let (left, right) = (self.select(1), self.select(1));
        // Columns of the left side for which the right side has one of the same kind.
        let mut pairs = Vec::new();
        for (place, &(kind, _)) in left.columns.iter().enumerate() {
            let other = right.columns.iter().position(|&(other, _)| other == kind);
            pairs.extend(other.map(|other| (place, other, kind)));
        }
        let mut columns: Vec<_> = pairs.iter().map(|&(_, _, kind)| (kind, Domain::None)).collect();
        let side = |select: &Select, places: Vec<usize>| {
            let casts =
                pairs.iter().zip(places).enumerate().map(|(place, (&(_, _, kind), from))| {
                    format!("CAST(o{from} AS {}) AS o{place}", type_of(kind))
                });
            let casts: Vec<_> = if pairs.is_empty() {
                vec!["CAST(1 AS BIGINT) AS o0".to_owned()]
            } else {
                casts.collect()
            };
            format!("SELECT {} FROM ({})", casts.join(", "), select.sql)
        };
        let left_sql = side(&left, pairs.iter().map(|pair| pair.0).collect());
        let right_sql = side(&right, pairs.iter().map(|pair| pair.1).collect());
        if columns.is_empty() {
            columns.push((Kind::Int, Domain::None));
        }
        let operation = self.random.pick(&[
            "UNION ALL",
            "UNION ALL",
            "UNION",
            "INTERSECT",
            "EXCEPT",
            "INTERSECT ALL",
            "EXCEPT ALL",
        ]);
        Select {
            sql: format!("{left_sql} {operation} {right_sql}"),
            columns,
            rows: left.rows + right.rows,
        }
    }

    /// A SELECT with at most `levels` levels of subqueries.
    fn select(&mut self, levels: u32) -> Select {
        let from = self.from(levels);
        let filter = match self.random.below(4) {
            0 | 1 => String::new(),
            _ => format!(" WHERE {}", self.filter(&from, levels)),
        };
        let source = format!("FROM {}{filter}", from.sql);
        match self.random.below(20) {
            0..=6 => self.aggregate(&from, &source),
            7 | 8 => self.projection("DISTINCT ", &from, &source, Vec::new()),
            9..=11 => {
                // A filter leaves unique rows unique.
                let mut windows = vec![self.random.window(&from.columns, &from.unique)];
                if self.random.chance(30) {
                    windows.push(self.random.window(&from.columns, &from.unique));
                }
                self.projection("", &from, &source, windows)
            }
            _ => self.projection("", &from, &source, Vec::new()),
        }
    }

    fn projection(
        &mut self,
        distinct: &str,
        from: &Relation,
        source: &str,
        more: Vec<Column>,
    ) -> Select {
        let count = 1 + self.random.below(4);
        let mut values: Vec<_> = (0..count).map(|_| self.random.value(&from.columns)).collect();
        values.extend(more);
        let sql = format!("SELECT {distinct}{} {source}", list(&values));
        Select { sql, columns: kinds(&values), rows: from.rows }
    }

    fn aggregate(&mut self, from: &Relation, source: &str) -> Select {
        let count = 1 + self.random.below(3);
        let aggregates: Vec<_> = (0..count).map(|_| self.random.aggregate(&from.columns)).collect();
        let having = match self.random.below(6) {
            0 => format!(" HAVING count(*) > {}", self.random.below(4)),
            _ => String::new(),
        };
        if self.random.chance(20) {
            let sql = format!("SELECT {} {source}{having}", list(&aggregates));
            return Select { sql, columns: kinds(&aggregates), rows: 1.0 };
        }
        let mut keys: Vec<Column> = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let key = match self.random.below(4) {
                0 => self.random.integer(&from.columns),
                _ => self.random.value(&from.columns),
            };
            if keys.iter().all(|other| other.sql != key.sql) {
                keys.push(key);
            }
        }
        let names = keys.iter().map(|key| key.sql.as_str()).collect::<Vec<_>>().join(", ");
        let groups = match self.random.below(12) {
            0 => format!("ROLLUP ({names})"),
            1 => format!("CUBE ({names})"),
            _ => names,
        };
        let values = [keys, aggregates].concat();
        let sql = format!("SELECT {} {source} GROUP BY {groups}{having}", list(&values));
        Select { sql, columns: kinds(&values), rows: from.rows }
    }

    /// A table, a subquery or a join.
    fn from(&mut self, levels: u32) -> Relation {
        let mut relation = self.source(levels);
        for _ in 0..*self.random.pick(&[0, 0, 0, 1, 1, 1, 2, 2, 3]) {
            let other = self.source(levels);
            relation = self.join(relation, other);
        }
        relation
    }

    fn source(&mut self, levels: u32) -> Relation {
        let name = self.name('t');
        if self.random.chance(50)
            && let Some((common, select)) = self.common.last()
        {
            return derived(common, &name, select);
        }
        if levels > 0 && self.random.chance(15) {
            let mut select = self.select(levels - 1);
            if self.random.chance(25) {
                let places: Vec<usize> = (0..select.columns.len()).collect();
                let places = self.all_of(&places);
                select.sql = format!("{} {} {}", select.sql, self.order_by(&places), self.limit());
            }
            return derived(&format!("({})", select.sql), &name, &select);
        }
        // The pair of parent and child is chosen more often than others.
        let table = match self.random.below(10) {
            0 | 1 => &TABLES[0],
            2..=4 => &TABLES[1],
            _ => self.table(),
        };
        base(table, &name)
    }

    /// A table. The empty one, which is last, is chosen seldom.
    fn table(&mut self) -> &'static Table {
        let tables = if self.random.chance(15) { &TABLES[..] } else { &TABLES[..TABLES.len() - 1] };
        self.random.pick(tables)
    }

    fn join(&mut self, left: Relation, right: Relation) -> Relation {
        let equal = self.pairs(&left, &right);
        let product = left.rows * right.rows;
        let either: Vec<Column> = [left.columns.clone(), right.columns.clone()].concat();
        let joined = |kind: &str, on: &str, rows: f64| Relation {
            sql: format!("{} {kind} {}{on}", left.sql, right.sql),
            columns: either.clone(),
            unique: Vec::new(),
            rows,
        };
        if product <= JOINED_ROWS_MAX && (equal.is_empty() || self.random.chance(20)) {
            if self.random.chance(30) {
                return joined("CROSS JOIN", "", product);
            }
            let kind = self.outer();
            let condition = self.random.condition(&either, 1);
            return joined(kind, &format!(" ON {condition}"), product + left.rows + right.rows);
        }
        let Some((equality, domain)) = equal.first() else { return left };
        let mut on = equality.clone();
        let mut rows = product / domain.values();
        for (more, domain) in &equal[1..] {
            if rows > JOINED_ROWS_MAX || self.random.chance(15) {
                on += &format!(" AND {more}");
                rows /= domain.values();
            }
        }
        if self.random.chance(20) {
            on += &format!(" AND {}", self.random.condition(&either, 1));
        }
        let on = format!(" ON {on}");
        if rows > JOINED_ROWS_MAX || self.random.chance(25) {
            let kind = *self.random.pick(&["LEFT SEMI", "LEFT ANTI", "RIGHT SEMI", "RIGHT ANTI"]);
            let kept = if kind.starts_with("LEFT") { &left } else { &right };
            let sql = format!("{} {kind} JOIN {}{on}", left.sql, right.sql);
            return Relation { sql, ..kept.clone() };
        }
        joined(self.outer(), &on, rows + left.rows.max(right.rows))
    }

    fn outer(&mut self) -> &'static str {
        self.random.pick::<&str>(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    }

    /// Equalities of columns that have values in common, in a random order.
    fn pairs(&mut self, left: &Relation, right: &Relation) -> Vec<(String, Domain)> {
        let mut pairs = Vec::new();
        for one in left.columns.iter().filter(|column| column.domain != Domain::None) {
            for other in right.columns.iter().filter(|other| other.domain == one.domain) {
                pairs.push((format!("{} = {}", one.sql, other.sql), one.domain));
            }
        }
        self.all_of(&pairs)
    }

    fn filter(&mut self, from: &Relation, levels: u32) -> String {
        let condition_depth = *self.random.pick(&[0, 0, 1, 2]);
        let condition = self.random.condition(&from.columns, condition_depth);
        if levels == 0 || self.random.chance(65) {
            return condition;
        }
        let name = self.name('s');
        let table = base(self.table(), &name);
        let within = self.random.condition(&table.columns, 1);
        let Some((equality, _)) = self.pairs(from, &table).first().cloned() else {
            return condition;
        };
        let (outer, inner) = equality.split_once(" = ").expect("an equality");
        let number = self.random.pick(&table.columns).clone();
        let subquery = match self.random.below(6) {
            0 => format!("{outer} IN (SELECT {inner} FROM {} WHERE {within})", table.sql),
            1 => format!(
                "{outer} NOT IN (SELECT {inner} FROM {} WHERE {within} AND {inner} IS NOT NULL)",
                table.sql
            ),
            2 => format!("{outer} NOT IN (SELECT {inner} FROM {} WHERE {within})", table.sql),
            3 | 4 => {
                let exists = self.random.pick(&["EXISTS", "NOT EXISTS"]);
                format!("{exists} (SELECT 1 FROM {} WHERE {equality} AND {within})", table.sql)
            }
            _ => {
                let Some(outer) = self.random.column_of(number.kind, &from.columns).cloned() else {
                    return condition;
                };
                let correlated = match self.random.below(3) {
                    0 => within,
                    _ => format!("{equality} AND {within}"),
                };
                let function = self.random.pick(&["min", "max"]);
                format!(
                    "{} {} (SELECT {function}({}) FROM {} WHERE {correlated})",
                    outer.sql,
                    self.random.pick(&["<", ">=", "="]),
                    number.sql,
                    table.sql
                )
            }
        };
        match self.random.below(2) {
            0 => subquery,
            _ => format!("{condition} AND {subquery}"),
        }
    }
}

fn base(table: &Table, name: &str) -> Relation {
    let columns = table.columns.iter().map(|&(column, kind, domain)| Column {
        sql: format!("{name}.{column}"),
        kind,
        domain,
    });
    Relation {
        sql: format!("{} {name}", table.name),
        columns: columns.collect(),
        unique: table.unique.iter().map(|column| format!("{name}.{column}")).collect(),
        rows: table.rows,
    }
}

fn derived(from: &str, name: &str, select: &Select) -> Relation {
    let columns = select.columns.iter().enumerate().map(|(place, &(kind, domain))| Column {
        sql: format!("{name}.o{place}"),
        kind,
        domain,
    });
    Relation {
        sql: format!("{from} {name}"),
        columns: columns.collect(),
        unique: Vec::new(),
        rows: select.rows,
    }
}

fn list(values: &[Column]) -> String {
    let named =
        values.iter().enumerate().map(|(place, value)| format!("{} AS o{place}", value.sql));
    named.collect::<Vec<_>>().join(", ")
}

fn kinds(values: &[Column]) -> Vec<(Kind, Domain)> {
    values.iter().map(|value| (value.kind, value.domain)).collect()
}

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "BIGINT",
        Kind::Decimal => "DECIMAL(20, 2)",
        Kind::Float => "DOUBLE",
        Kind::Text => "VARCHAR",
        Kind::Date => "DATE",
        Kind::Time => "TIMESTAMP",
        Kind::Bool => "BOOLEAN",
    }
}
