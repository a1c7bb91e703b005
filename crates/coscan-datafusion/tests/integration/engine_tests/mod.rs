//! The SQL tests of DataFusion itself, plain and shared: the same answers.
//!
//! They are in the crate `datafusion-sqllogictest`. The test runs only on request, with the folder of that crate:
//! `.ci/weekly` fetches it. What the files expect does not matter here, only that both engines answer alike; tables in
//! memory are written to Parquet first, in both. Answers may differ where `differences.txt` says so.
//! `COSCAN_ENGINE_TESTS_ONLY=joins` runs the files with `joins` in their path.

mod files;
mod known;
mod summary;
mod tables;

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use coscan_datafusion::CoscanOptions;
use coscan_runtime::{BufferManager, Options};
use coscan_storage::table::{ColumnTypes, FileOptions, PageLayout};
use datafusion::prelude::SessionContext;
use futures::{FutureExt, StreamExt, stream};

use files::TestFile;
use summary::{Answer, Summary};
use tables::Tables;

/// The maximum time of a statement. Slower ones are taken to never end.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The number of files that run at the same time.
const CONCURRENT: usize = 4;
/// The stack size, since some queries of the files are nested deeply.
const STACK_BYTES: usize = 64 << 20;

/// The storage of tables, and the memory of both kinds of session for them.
#[derive(Clone, Copy, Debug)]
struct Variant {
    group_rows: usize,
    pool_bytes: u64,
}

const VARIANTS: [Variant; 3] = [
    Variant { group_rows: 1_000_000, pool_bytes: 64 << 20 },
    Variant { group_rows: 3, pool_bytes: 1 << 20 },
    Variant { group_rows: 1, pool_bytes: 64 << 20 },
];

impl Variant {
    /// Installs coscan so that every scan is shared, in chunks as small as the row groups.
    fn install(self, context: &SessionContext) {
        let options = Options::with_pool_bytes(self.pool_bytes, 1 << 30);
        let table_options = FileOptions {
            chunk_rows: self.group_rows.min(1000) as u64,
            layout: PageLayout::Column,
            types: ColumnTypes::USUAL,
        };
        CoscanOptions::new(&BufferManager::new(options).unwrap())
            .with_table_options(table_options)
            .with_direct_bytes_max(0)
            .install(context)
            .unwrap();
    }
}

/// The answers of an engine to the statements of a file, with its data in a folder of its own.
async fn answers(file: &TestFile, folder: &Path, variant: Variant, shared: bool) -> Vec<Answer> {
    let context = crate::support::plain();
    if shared {
        variant.install(&context);
    }
    let data = tempfile::tempdir().unwrap();
    let mut tables = Tables::new(context.clone(), data.path(), variant.group_rows);
    let mut answers = Vec::new();
    for statement in &file.statements {
        let sql = statement.sql_in(folder);
        tables.before(&sql);
        let answer = AssertUnwindSafe(answer(&context, &sql)).catch_unwind().await;
        tables.after(&sql).await;
        answers.push(answer.unwrap_or_else(|_| Answer::Refused("panics".to_owned())));
    }
    answers
}

async fn answer(context: &SessionContext, sql: &str) -> Answer {
    match tokio::time::timeout(TIMEOUT, crate::support::slt::run(context, sql)).await {
        Err(_) => Answer::Refused("does not end".to_owned()),
        Ok(Err(error)) => Answer::Refused(error.to_string()),
        Ok(Ok(rows)) => Answer::Rows(rows),
    }
}

/// Runs a file on both engines.
async fn compare(file: Arc<TestFile>, folders: [PathBuf; 2], variant: Variant) -> Summary {
    let [plain, shared] = folders;
    let expected = answers(&file, &plain, variant, false).await;
    let actual = answers(&file, &shared, variant, true).await;
    let mut summary = Summary::default();
    let answers = expected.into_iter().zip(actual);
    for (statement, (expected, actual)) in file.statements.iter().zip(answers) {
        summary.add(statement, expected, actual);
    }
    summary
}

async fn run(crate_folder: &Path, variant: Variant) -> Summary {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    folders.iter().for_each(|folder| files::copy_data(crate_folder, folder.path()));
    let paths = folders.each_ref().map(|folder| folder.path().to_owned());
    let mut files = files::all(&crate_folder.join("test_files"));
    assert!(files.len() > 200, "only {} files in {}", files.len(), crate_folder.display());
    if let Ok(wanted) = std::env::var("COSCAN_ENGINE_TESTS_ONLY") {
        files.retain(|file| file.name.contains(&wanted));
    }
    let runs = files.into_iter().map(|file| {
        let (file, paths) = (Arc::new(file), paths.clone());
        tokio::spawn(compare(file, paths, variant))
    });
    let runs = stream::iter(runs).buffer_unordered(CONCURRENT);
    runs.map(Result::unwrap).fold(Summary::default(), |all, one| async { all.with(one) }).await
}

#[test]
#[ignore = "needs the folder of datafusion-sqllogictest in COSCAN_ENGINE_TESTS: .ci/weekly"]
fn the_engines_own_tests_are_answered_alike() {
    let folder = std::env::var_os("COSCAN_ENGINE_TESTS").map(PathBuf::from);
    let folder =
        folder.expect("COSCAN_ENGINE_TESTS: the folder of the crate datafusion-sqllogictest");
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().thread_stack_size(STACK_BYTES).build().unwrap();
    let mut unexplained = Vec::new();
    println!("{}", Summary::HEAD);
    for variant in VARIANTS {
        let summary = runtime.block_on(run(&folder, variant));
        println!("{}", summary.line(&variant));
        unexplained.extend(summary.unexplained(&variant));
    }
    assert!(unexplained.is_empty(), "{}:\n{}", unexplained.len(), unexplained.join("\n"));
}
