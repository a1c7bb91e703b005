//! Queries that run alone: coscan must cost no more than plain DataFusion.
//!
//! Both engines answer each query in turn, many times, so that disturbances of the machine hit both.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::answers::compare_answers;
use crate::engines::EngineKind;
use crate::experiment::Prepared;
use crate::runner::{Engine, EngineError};
use crate::workload::{Kind, Percent, Query};

/// One query, run alone on two engines.
#[derive(Debug, Clone, Serialize)]
pub struct AloneReport {
    /// Its name, or its text.
    pub query: String,
    /// The median time on plain DataFusion, in seconds.
    pub datafusion_s: f64,
    /// The median time on the other engine, in seconds.
    pub coscan_s: f64,
    /// The median over the rounds of the second divided by the first.
    pub ratio: f64,
    /// Whether the answers are equal.
    pub answers_equal: bool,
}

impl Prepared {
    /// Runs each query `rounds` times on plain DataFusion and on `kind`. `queries` may be on any table; if there are
    /// none, the built-in queries on TPC-H lineitem run: Q1 and Q6 over the whole table, a count of all rows, filters
    /// that select 0.01 % of them (by key, and by a column in no order), and the last five rows.
    ///
    /// # Errors
    /// If the table cannot be opened, a query fails, or the built-in queries are to run on a table that was
    /// [prepared without streams](crate::experiment::Experiment::prepare_without_streams).
    pub async fn alone(
        &self,
        kind: EngineKind,
        rounds: usize,
        queries: &[String],
    ) -> Result<Vec<AloneReport>, EngineError> {
        let plain = self.engine(EngineKind::DataFusion).await?;
        let other = self.engine(kind).await?;
        let mut reports = Vec::new();
        let queries = match queries {
            [] => self.built_in_queries()?,
            given => given.iter().map(|sql| (sql.clone(), sql.clone())).collect(),
        };
        for (name, sql) in queries {
            let expected = plain.query(&sql).await?;
            let answers_equal = compare_answers(&sql, &expected, &other.query(&sql).await?).is_ok();
            let mut times = Vec::new();
            for round in 0..rounds.max(1) {
                // The engines alternate in going first.
                let (first, second) =
                    if round % 2 == 0 { (&plain, &other) } else { (&other, &plain) };
                let first_time = time(first, &sql).await?;
                let second_time = time(second, &sql).await?;
                times.push(if round % 2 == 0 {
                    (first_time, second_time)
                } else {
                    (second_time, first_time)
                });
            }
            let seconds = |time: Duration| time.as_secs_f64();
            reports.push(AloneReport {
                query: name,
                datafusion_s: median(times.iter().map(|(plain, _)| seconds(*plain))),
                coscan_s: median(times.iter().map(|(_, other)| seconds(*other))),
                ratio: median(times.iter().map(|(plain, other)| seconds(*other) / seconds(*plain))),
                answers_equal,
            });
        }
        Ok(reports)
    }

    /// The name and the text of each built-in query.
    fn built_in_queries(&self) -> Result<Vec<(String, String)>, EngineError> {
        let keys = self.keys.as_ref();
        let keys = keys.ok_or("there is no query; the built-in ones need TPC-H lineitem")?;
        let table = &self.experiment.table;
        let whole = |kind| Query { kind, percent: Percent::WHOLE, keys: None }.sql(table);
        let (first, last) = (*keys.start(), *keys.end());
        let middle = first + (last - first) / 2;
        let part = (last - first) / 10_000;
        let sum = "SELECT count(*), sum(l_extendedprice) FROM";
        Ok(vec![
            ("Q1, whole table".to_owned(), whole(Kind::Slow)),
            ("Q6, whole table".to_owned(), whole(Kind::Fast)),
            ("count(*)".to_owned(), format!("SELECT count(*) FROM {table}")),
            (
                "0.01 % of the rows, by key".to_owned(),
                format!("{sum} {table} WHERE l_orderkey BETWEEN {middle} AND {}", middle + part),
            ),
            (
                "0.01 % of the rows, anywhere".to_owned(),
                format!("{sum} {table} WHERE l_partkey % 10000 = 77"),
            ),
            (
                "last 5 rows, by key".to_owned(),
                format!(
                    "SELECT * FROM {table} ORDER BY l_orderkey DESC, l_linenumber DESC LIMIT 5"
                ),
            ),
        ])
    }
}

async fn time(engine: &dyn Engine, sql: &str) -> Result<Duration, EngineError> {
    let started = Instant::now();
    engine.query(sql).await?;
    Ok(started.elapsed())
}

/// The median, or 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
