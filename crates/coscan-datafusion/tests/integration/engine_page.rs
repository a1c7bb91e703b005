//! Checks `docs/engine.md`: each query of the page has the answers that the page gives, of plain DataFusion and of
//! coscan. A failure for plain DataFusion after an upgrade means that a bug was fixed there. The entry and its guard
//! can then be removed.

use std::panic::AssertUnwindSafe;

use coscan_runtime::core::PolicyKind;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engine.md");

/// A query of the page, with the statements before it and its answers.
#[derive(Debug)]
struct Entry<'a> {
    title: &'a str,
    statements: Vec<&'a str>,
    /// The answers of each engine, or possible answers if they vary.
    answers: [Vec<&'a str>; 2],
}

const ENGINES: [&str; 2] = ["DataFusion", "coscan"];

fn entries(page: &str) -> Vec<Entry<'_>> {
    let sections = page.split("\n## ").skip(1);
    let entries = sections.flat_map(|section| {
        let title = section.lines().next().unwrap();
        // A section may have several queries.
        section.split("```sql\n").skip(1).map(move |entry| {
            let (sql, rest) = entry.split_once("```").unwrap();
            let statements = sql.split(";\n").map(str::trim).filter(|sql| !sql.is_empty());
            let (_, answers) = rest.split_once("```text\n").expect(title);
            let (answers, _) = answers.split_once("```").unwrap();
            let of = |engine: &str| {
                let mut lines = answers.lines();
                let answer = lines.find_map(|line| line.strip_prefix(engine)).expect(title);
                answer.trim().split(" or ").collect()
            };
            Entry { title, statements: statements.collect(), answers: ENGINES.map(of) }
        })
    });
    entries.collect()
}

fn session(engine: &str) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(4).with_information_schema(true);
    let context = SessionContext::new_with_config(config);
    if engine == "DataFusion" {
        return context.enable_url_table();
    }
    let context = coscan_datafusion::enable_url_table(context);
    coscan_datafusion::install(&context, &crate::support::manager(PolicyKind::Relevance)).unwrap();
    context
}

/// The rows of the last statement, or the error.
async fn answer(engine: &str, entry: &Entry<'_>) -> String {
    let context = session(engine);
    let mut answer = String::new();
    for sql in &entry.statements {
        let rows = AssertUnwindSafe(crate::support::slt::run(&context, sql)).catch_unwind().await;
        answer = match rows {
            Ok(Ok(rows)) if rows.is_empty() => "no rows".to_owned(),
            Ok(Ok(rows)) => rows.join(", "),
            Ok(Err(error)) => format!("error: {error}"),
            Err(_) => "panic".to_owned(),
        };
    }
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_on_the_engine_is_true() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let entries = entries(&page);
    assert!(entries.len() > 5, "{entries:?}");
    let mut wrong = Vec::new();
    for (engine, answers) in ENGINES.into_iter().zip(0..) {
        // Statements name files in the current directory.
        let directory = tempfile::tempdir().unwrap();
        std::env::set_current_dir(directory.path()).unwrap();
        for entry in &entries {
            let expected: &Vec<_> = &entry.answers[answers];
            let actual = answer(engine, entry).await;
            let is_expected = |expected: &&str| match expected.strip_prefix("error: ") {
                Some(text) => actual.starts_with("error") && actual.contains(text),
                None => actual == **expected,
            };
            if !expected.iter().any(is_expected) {
                wrong.push(format!(
                    "{}, {engine}\n  page:   {expected:?}\n  answer: {actual}",
                    entry.title
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
