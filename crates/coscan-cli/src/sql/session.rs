//! A DataFusion session whose Parquet tables are shared.

use std::io::{BufWriter, stdout};
use std::time::Instant;

use coscan_core::PolicyKind;
use coscan_runtime::{BufferManager, ManagerReport, Options};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;

use crate::Failure;
use crate::sql::output::{Format, Printer};

/// What statements run in, and how their results are printed.
pub(super) struct Session {
    context: SessionContext,
    manager: BufferManager,
    pub(super) format: Format,
    pub(super) rows_max: Option<usize>,
    pub(super) timing: bool,
}

impl Session {
    /// A session without tables. `memory_bytes` is the budget for everything.
    pub(super) fn new(memory_bytes: Option<u64>, policy: PolicyKind) -> Result<Self, Failure> {
        let options = memory_bytes.map_or_else(Options::default, Options::with_memory_bytes);
        let manager = BufferManager::new(options.policy(policy))?;
        let context =
            SessionContext::new_with_config(SessionConfig::new().with_information_schema(true));
        coscan_datafusion::install(&context, &manager)?;
        Ok(Self { context, manager, format: Format::Table, rows_max: None, timing: true })
    }

    /// Adds a table of Parquet files.
    pub(super) async fn add_table(&self, name: &str, url: &str) -> Result<(), Failure> {
        let (name, url) = (name.replace('"', "\"\""), url.replace('\'', "''"));
        let sql = format!("CREATE EXTERNAL TABLE \"{name}\" STORED AS PARQUET LOCATION '{url}'");
        self.context.sql(&sql).await?.collect().await?;
        Ok(())
    }

    /// Runs one statement and prints its result. Dropping the future cancels it.
    pub(super) async fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        let started = Instant::now();
        let frame = self.context.sql(sql).await?;
        let mut batches = frame.execute_stream().await?;
        // Statements such as CREATE give a result without columns.
        let has_rows = !batches.schema().fields().is_empty();
        let out = BufWriter::new(stdout());
        let mut printer = Printer::new(out, self.format, self.rows_max, batches.schema());
        while let Some(batch) = batches.next().await {
            printer.print(&batch?)?;
        }
        let rows = if has_rows { Some(printer.finish()?) } else { None };
        if self.timing {
            let rows = rows.map_or(String::new(), |rows| {
                format!("{rows} {}, ", if rows == 1 { "row" } else { "rows" })
            });
            eprintln!("{rows}{:.3} s", started.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// What the buffer manager holds and does.
    pub(super) fn report(&self) -> ManagerReport {
        self.manager.report()
    }
}
