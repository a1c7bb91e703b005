//! Queries that run alone: coscan must cost no more than plain DataFusion.
//!
//! Both engines answer each query in turn, many times.

use std::time::Instant;

use serde::Serialize;

use crate::answers::compare_answers;
use crate::engines::EngineKind;
use crate::experiment::Prepared;
use crate::metrics::median;
use crate::process;
use crate::rounds::{RoundRatio, in_turn, interleaved};
use crate::runner::{Engine, EngineError};
use crate::workload::{Kind, Query};

/// One query, run alone on two engines.
#[derive(Debug, Clone, Serialize)]
pub struct AloneReport {
    /// Its name, or its text.
    pub query: String,
    /// The median time on plain DataFusion, in seconds.
    pub datafusion_s: f64,
    /// The median time on the other engine, in seconds.
    pub coscan_s: f64,
    /// The second divided by the first.
    pub ratio: RoundRatio,
    /// The median processor time of the process on plain DataFusion, in seconds.
    pub datafusion_cpu_s: f64,
    /// The median processor time on the other engine, in seconds.
    pub coscan_cpu_s: f64,
    /// The second processor time divided by the first.
    pub cpu_ratio: RoundRatio,
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
        let queries = match queries {
            [] => self.built_in_queries()?,
            given => given.iter().map(|sql| (sql.clone(), sql.clone())).collect(),
        };
        let engines = [self.engine(EngineKind::DataFusion).await?, self.engine(kind).await?];
        let mut reports = Vec::new();
        for (query, sql) in queries {
            let answers = in_turn(0, &engines, async |engine| engine.query(&sql).await).await?;
            let times = interleaved(rounds, &engines, async |engine| {
                let (started, cpu) = (Instant::now(), process::cpu_time());
                engine.query(&sql).await?;
                let cpu = process::cpu_time().saturating_sub(cpu);
                Ok((started.elapsed().as_secs_f64(), cpu.as_secs_f64()))
            });
            let times = times.await?;
            let [plain_s, coscan_s] = [0, 1].map(|engine| {
                times[engine].iter().map(|(seconds, _)| *seconds).collect::<Vec<_>>()
            });
            let [plain_cpu_s, coscan_cpu_s] =
                [0, 1].map(|engine| times[engine].iter().map(|(_, cpu)| *cpu).collect::<Vec<_>>());
            reports.push(AloneReport {
                query,
                ratio: RoundRatio::new(&coscan_s, &plain_s),
                cpu_ratio: RoundRatio::new(&coscan_cpu_s, &plain_cpu_s),
                datafusion_s: median(plain_s),
                coscan_s: median(coscan_s),
                datafusion_cpu_s: median(plain_cpu_s),
                coscan_cpu_s: median(coscan_cpu_s),
                answers_equal: compare_answers(&sql, &answers[0], &answers[1]).is_ok(),
            });
        }
        Ok(reports)
    }

    /// The name and the text of each built-in query.
    fn built_in_queries(&self) -> Result<Vec<(String, String)>, EngineError> {
        let keys = self.keys.as_ref();
        let keys = keys.ok_or("there is no query; the built-in ones need TPC-H lineitem")?;
        let table = &self.experiment.table;
        let whole = |kind| Query::whole(kind).sql(table);
        let (first, last) = (*keys.start(), *keys.end());
        let middle = first + (last - first) / 2;
        let part = (last - first) / 10_000;
        let sum = "SELECT count(*), sum(l_extendedprice) FROM";
        let named = [
            ("Q1, whole table", whole(Kind::Slow)),
            ("Q6, whole table", whole(Kind::Fast)),
            ("count(*)", format!("SELECT count(*) FROM {table}")),
            (
                "0.01 % of the rows, by key",
                format!("{sum} {table} WHERE l_orderkey BETWEEN {middle} AND {}", middle + part),
            ),
            ("0.01 % of the rows, anywhere", format!("{sum} {table} WHERE l_partkey % 10000 = 77")),
            (
                "last 5 rows, by key",
                format!(
                    "SELECT * FROM {table} ORDER BY l_orderkey DESC, l_linenumber DESC LIMIT 5"
                ),
            ),
        ];
        Ok(named.map(|(name, sql)| (name.to_owned(), sql)).to_vec())
    }
}
