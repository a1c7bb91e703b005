//! Tables that Spark, Databricks and other writers of Delta wrote, with what such tables have that `deltalake` cannot write:
//! deletion vectors, column mapping, v2 checkpoints. They come with the sources of the Python package `deltalake`, which
//! also says which rows each version has. So this test runs only on request:
//! `cargo test -p coscan-delta --test integration -- --ignored golden`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use datafusion::prelude::{ParquetReadOptions, SessionContext};

/// Tables that coscan refuses, each with a part of the error. Files of most of them are not in the package.
const REFUSED: [(&str, &str); 8] = [
    ("checkpoint_with_partitions", "not found"),
    ("checkpoints", "not found"),
    ("checkpoints_vacuumed", "not found"),
    ("latest_not_checkpointed", "not found"),
    ("simple_table_features", "Invalid protocol action"),
    ("spark-variant-stable-feature-checkpoint", "not found"),
    ("table-with-domain-metadata", "not found"),
    ("with_checkpoint_no_last_checkpoint", "not found"),
];

/// Runs a command, which must succeed.
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&printed));
}

/// The tables and their rows, in a directory with `tables` and `expected`.
fn fetch(directory: &Path) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let clients = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let install = crates.join("coscan-server/tests/integration/clients/install");
    run(Command::new(install).arg("python").arg(&clients));
    let program = crates.join("coscan-delta/tests/integration/golden/golden.py");
    run(Command::new(clients.join("venv/bin/python")).arg(program).arg(directory));
}

/// The directories below `root` that have this entry.
fn directories_with(root: &Path, entry: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        if directory.join(entry).exists() {
            found.push(directory.clone());
        }
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        left.extend(entries.filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

/// The versions of a table whose rows are known.
fn versions(expected: &Path) -> BTreeSet<u64> {
    let files = std::fs::read_dir(expected).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.is_file());
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

/// The rows of `relation` with the columns of `columns`.
async fn rows(context: &SessionContext, columns: &[String], relation: &str) -> Vec<String> {
    super::rows(context, &format!("SELECT {} FROM {relation}", columns.join(", "))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Python and packages"]
async fn golden_tables_have_the_rows_that_deltalake_reads() {
    let directory = tempfile::tempdir().unwrap();
    fetch(directory.path());
    let root = directory.path().join("tables");
    let tables = directories_with(&root, "_delta_log");
    let (mut checked, mut refused) = (0, Vec::new());
    for table in &tables {
        let name = table.strip_prefix(&root).unwrap();
        let expected = directory.path().join("expected").join(name);
        let versions = versions(&expected);
        let context = match super::session_at(table).await {
            Ok(context) => context,
            Err(error) => {
                refused.push((name.display().to_string(), error.to_string()));
                continue;
            }
        };
        for version in versions {
            let file = expected.join(format!("{version}.parquet"));
            let options = ParquetReadOptions::default();
            context.register_parquet("expected", file.to_str().unwrap(), options).await.unwrap();
            let schema = context.table("expected").await.unwrap();
            let columns =
                schema.schema().fields().iter().map(|field| format!("`{}`", field.name()));
            let columns: Vec<_> = columns.collect();
            let relation = format!("t VERSION AS OF {version}");
            let read = rows(&context, &columns, &relation).await;
            let expected = rows(&context, &columns, "expected").await;
            assert!(
                read == expected,
                "{}, version {version}: {read:?}\n{expected:?}",
                name.display()
            );
            context.deregister_table("expected").unwrap();
            checked += 1;
        }
    }
    assert_eq!(refused.len(), REFUSED.len(), "{refused:#?}");
    for ((name, error), (expected_name, expected)) in refused.iter().zip(REFUSED) {
        assert!(name == expected_name && error.contains(expected), "{name}: {error}");
    }
    assert!(checked >= 150 && tables.len() >= 50, "{checked} versions of {} tables", tables.len());
}
