//! Random queries over small tables, under random settings, have the rows of plain DataFusion.
//!
//! A number stands for a query and its settings. `COSCAN_RANDOM_QUERIES=0..10000` runs others than the usual ones, and
//! `COSCAN_RANDOM_QUERIES=77..78` one alone.

mod answers;
mod expressions;
mod query;
mod settings;
mod tables;

use std::ops::Range;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};

use crate::support::{Seeded, range_of};
use answers::Answer;
use query::{Generator, Query};
use settings::{Sessions, Settings};

/// Says which queries run.
const VARIABLE: &str = "COSCAN_RANDOM_QUERIES";
const USUAL: Range<u64> = 0..150;
const USUAL_OF_CHANGED_TABLES: Range<u64> = 0..50;
/// The minimum number of queries of which most must be comparable.
const MANY: usize = 100;
/// The number of queries that use the same tables.
const QUERIES_OF_TABLES: u64 = 500;
/// The number of queries that run at the same time.
const CONCURRENT: usize = 4;
/// The maximum time of a query. Slower ones are taken to never end.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The result of a query on both engines.
#[derive(Debug)]
enum Outcome {
    Equal {
        rows: usize,
    },
    /// Plain DataFusion refuses the query.
    Refused(String),
    Different(String),
}

/// Runs a query on both engines.
async fn run(sessions: &Sessions<'_>, number: u64) -> Outcome {
    let mut random = Seeded::new(number.wrapping_mul(0x9E6D_62D0_6F6A_9A9B));
    let settings = Settings::new(&mut random);
    let query = Generator::new(random).query();
    let different = |what: &str| {
        Outcome::Different(format!("query {number}: {what}\n{}\n{settings:?}", query.sql))
    };
    let (expected, unlimited) = match answers(&sessions.plain(&settings), &query).await {
        Ok(answers) => answers,
        Err(error) => return Outcome::Refused(format!("query {number}: {error}\n{}", query.sql)),
    };
    let shared = sessions.shared(&settings).await;
    match tokio::time::timeout(TIMEOUT, Answer::of(&shared, &query.sql)).await {
        Err(_) => different("does not end"),
        Ok(Err(error)) => different(&format!("coscan refuses it: {error}")),
        Ok(Ok(actual)) => match actual.compare(&expected, &query, unlimited.as_ref()) {
            Ok(()) => Outcome::Equal { rows: actual.rows.len() },
            Err(difference) => different(&format!(
                "{difference}\ncoscan: {:?}\nplain: {:?}",
                first(&actual),
                first(&expected)
            )),
        },
    }
}

/// The answer of plain DataFusion, and the answer without the limit where the comparison needs it.
async fn answers(plain: &SessionContext, query: &Query) -> Result<(Answer, Option<Answer>)> {
    let expected = Answer::of(plain, &query.sql).await?;
    match &query.unlimited {
        Some(unlimited) => Ok((expected, Some(Answer::of(plain, unlimited).await?))),
        None => Ok((expected, None)),
    }
}

/// The first rows of an answer.
fn first(answer: &Answer) -> &[Vec<String>] {
    &answer.rows[..answer.rows.len().min(20)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_queries_have_the_rows_of_plain_datafusion() {
    check(range_of(VARIABLE, USUAL), false).await;
}

/// As above, of tables of a database in which rows were changed. Plain DataFusion has the same rows without changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn random_queries_of_changed_tables_have_the_rows_of_plain_datafusion() {
    check(range_of(VARIABLE, USUAL_OF_CHANGED_TABLES), true).await;
}

/// Runs the queries, on tables of files or on changed ones.
async fn check(numbers: Range<u64>, are_changed: bool) {
    let (mut refused, mut differences, mut without_rows) = (Vec::new(), Vec::new(), 0);
    let mut start = numbers.start;
    while start < numbers.end {
        let tables = start / QUERIES_OF_TABLES;
        let end = numbers.end.min((tables + 1) * QUERIES_OF_TABLES);
        let data = tempfile::tempdir().unwrap();
        tables::write(data.path(), tables * 1000);
        let changes = are_changed.then_some(tables);
        let sessions = Sessions::new(data.path(), changes).await;
        let outcomes = stream::iter(start..end).map(|number| run(&sessions, number));
        let outcomes: Vec<_> = outcomes.buffer_unordered(CONCURRENT).collect().await;
        for outcome in outcomes {
            match outcome {
                Outcome::Equal { rows } => without_rows += usize::from(rows == 0),
                Outcome::Refused(error) => refused.push(error),
                Outcome::Different(difference) => differences.push(difference),
            }
        }
        for manager in sessions.managers().await {
            crate::support::assert_all_frees(&manager).await;
        }
        start = end;
    }
    let total = (numbers.end - numbers.start) as usize;
    println!("{total} queries: {without_rows} without rows, {} refused", refused.len());
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n\n"));
    if total >= MANY {
        assert!(refused.len() * 20 <= total, "too many are refused:\n{}", refused.join("\n\n"));
        assert!(without_rows * 3 <= total, "too many have no rows");
    }
}
