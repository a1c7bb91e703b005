//! Runs files of statements and queries with their expected results, in the syntax of sqllogictest.
//!
//! It supports `statement ok`, `statement error TEXT`, `query [TYPES] [rowsort]`, `onlyif ENGINE`, comments. `$DATA`
//! in a statement is a directory of the run. With `COSCAN_SLT_UPDATE` set, plain DataFusion writes the expected results
//! anew.

use std::path::Path;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;

use super::one_by_one;

/// One statement or query of a file.
#[derive(Debug)]
struct Record {
    /// The lines up to the statement.
    head: Vec<String>,
    sql: String,
    /// The expected rows of a query.
    expected: Vec<String>,
    line: usize,
}

impl Record {
    fn directive(&self) -> &str {
        self.head.iter().rfind(|line| !line.starts_with("onlyif")).map_or("", String::as_str)
    }

    fn is_for(&self, engine: &str) -> bool {
        self.head.iter().filter_map(|line| line.strip_prefix("onlyif ")).all(|only| only == engine)
    }

    fn is_query(&self) -> bool {
        self.directive().starts_with("query")
    }
}

/// Runs a statement and returns its rows as text.
pub(crate) async fn run(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    rows(&context.sql(sql).await?.collect().await?)
}

/// Does the same as [`run`], with the partitions of each scan one after another in tasks of their own.
async fn run_one_by_one(context: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let plan = one_by_one::scans(context.sql(sql).await?.create_physical_plan().await?)?;
    rows(&collect(plan, context.task_ctx()).await?)
}

/// The rows of batches as text.
pub(crate) fn rows(batches: &[RecordBatch]) -> Result<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|array| ArrayFormatter::try_new(array, &options));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| match column.value(row).to_string() {
                value if value.is_empty() => "(empty)".to_owned(),
                value => value,
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(rows)
}

/// Runs a file on an engine, and panics at the first result that is not as expected.
pub(crate) async fn run_file(path: &Path, engine: &str, context: &SessionContext, data: &Path) {
    let run_statement = async |sql: &str| match engine {
        "one-by-one" => run_one_by_one(context, sql).await,
        _ => run(context, sql).await,
    };
    run_file_with(path, engine, run_statement, data).await;
}

/// Does the same as [`run_file`], with a function that runs a statement and returns its rows as text.
pub(crate) async fn run_file_with(
    path: &Path,
    engine: &str,
    run_statement: impl AsyncFn(&str) -> Result<Vec<String>>,
    data: &Path,
) {
    let updates = engine == "plain" && std::env::var_os("COSCAN_SLT_UPDATE").is_some();
    let text = std::fs::read_to_string(path).unwrap();
    let mut records = parse(&text);
    for record in records.iter_mut().filter(|record| record.is_for(engine)) {
        let place = format!("{}:{} on {engine}", path.display(), record.line);
        let sql = record.sql.replace("$DATA", &data.display().to_string());
        let result = run_statement(&sql).await;
        if let Some(wanted) = record.directive().strip_prefix("statement error") {
            let error = result.expect_err(&place).to_string();
            assert!(error.contains(wanted.trim()), "{place}: {error}");
            continue;
        }
        let mut rows = result.unwrap_or_else(|error| panic!("{place}: {error}\n{sql}"));
        if !record.is_query() {
            continue;
        }
        // A value may have line breaks.
        rows = rows.iter().flat_map(|row| row.lines()).map(str::to_owned).collect();
        if record.directive().ends_with("rowsort") {
            rows.sort();
        }
        if updates {
            record.expected = rows;
        } else {
            assert_eq!(rows, record.expected, "{place}\n{sql}");
        }
    }
    if updates {
        std::fs::write(path, render(&text, &records)).unwrap();
    }
}

fn parse(text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut head = vec![line.to_owned()];
        while head.last().is_some_and(|line| line.starts_with("onlyif")) {
            head.push(lines.next().expect("a directive after onlyif").1.to_owned());
        }
        let mut sql = Vec::new();
        let mut expected = Vec::new();
        let mut is_result = false;
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            match line {
                "----" => is_result = true,
                line if is_result => expected.push(line.to_owned()),
                line => sql.push(line),
            }
        }
        records.push(Record { head, sql: sql.join("\n"), expected, line: number + 1 });
    }
    records
}

/// The text of the file with the current results of the records. Comments stay.
fn render(text: &str, records: &[Record]) -> String {
    let mut rendered = String::new();
    let mut records = records.iter();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let comments: Vec<_> = block.lines().take_while(|line| line.starts_with('#')).collect();
        if !rendered.is_empty() {
            rendered.push('\n');
        }
        for comment in &comments {
            rendered += &format!("{comment}\n");
        }
        if comments.len() == block.lines().count() {
            continue;
        }
        let record = records.next().expect("a record a block");
        rendered += &format!("{}\n{}\n", record.head.join("\n"), record.sql);
        if record.is_query() {
            rendered += "----\n";
            record.expected.iter().for_each(|row| rendered += &format!("{row}\n"));
        }
    }
    rendered
}
