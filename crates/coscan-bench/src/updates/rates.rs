//! Rows that are changed in a second, each statement being durable before the next one of its session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::try_join_all;

use crate::runner::EngineError;
use crate::updates::report::RateReport;
use crate::updates::{Opened, execute};

/// Rows of the table whose rows are changed by key.
const ROWS: u64 = 1_000_000;

/// Rows of a batch.
const BATCH: u64 = 1000;

/// Sessions at the same time.
const SESSIONS: [usize; 2] = [1, 16];

/// A kind of statement: its name, the rows of each, and the text of one with a number.
type Statement = (&'static str, u64, fn(u64) -> String);

/// Measures statements of one row and of a batch of rows, in one session and in several.
pub(super) async fn measure(
    opened: &Opened,
    seconds: f64,
    on_step: &dyn Fn(&str),
) -> Result<Vec<RateReport>, EngineError> {
    let create =
        format!("CREATE TABLE accounts AS SELECT value AS id, 0 AS balance FROM range(0, {ROWS})");
    opened.run(&create).await?;
    let statements: [Statement; 5] = [
        ("SELECT by key", 1, |n| format!("SELECT balance FROM accounts WHERE id = {}", key(n))),
        ("UPDATE by key", 1, |n| {
            format!("UPDATE accounts SET balance = balance + 1 WHERE id = {}", key(n))
        }),
        ("DELETE by key", 1, |n| format!("DELETE FROM accounts WHERE id = {}", key(n))),
        ("INSERT of a row", 1, |n| format!("INSERT INTO accounts VALUES ({}, 1)", ROWS + n)),
        ("INSERT of 1,000 rows", BATCH, |n| {
            let first = 2 * ROWS + n * BATCH;
            format!("INSERT INTO accounts SELECT value, 1 FROM range({first}, {})", first + BATCH)
        }),
    ];
    let mut reports = Vec::new();
    let next = Arc::new(AtomicU64::new(0));
    for (statement, rows, sql) in statements {
        for sessions in SESSIONS {
            on_step(&format!("{statement}, {sessions} sessions"));
            let start = Instant::now();
            let end = start + Duration::from_secs_f64(seconds);
            let runs = (0..sessions).map(|_| {
                let (context, next) = (opened.session(), Arc::clone(&next));
                let running = tokio::spawn(async move {
                    let context = context?;
                    let mut done = 0;
                    while Instant::now() < end {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        execute(&context, &sql(number)).await?;
                        done += 1;
                    }
                    Ok::<u64, EngineError>(done)
                });
                async { running.await? }
            });
            let done: u64 = try_join_all(runs).await?.into_iter().sum();
            let statements_per_second = done as f64 / start.elapsed().as_secs_f64();
            reports.push(RateReport {
                statement: statement.to_owned(),
                sessions,
                statements_per_second,
                rows_per_second: statements_per_second * rows as f64,
            });
        }
    }
    Ok(reports)
}

/// A key of the table, another one for each number up to the number of rows.
fn key(number: u64) -> u64 {
    number.wrapping_mul(7919) % ROWS
}
