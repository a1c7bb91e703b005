//! Files that declare their order save a sort, if the order holds over all of them, one after another.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use coscan_runtime::core::PolicyKind;
use coscan_testing::write_parquet;
use datafusion::prelude::SessionContext;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;

use crate::support::{create, explain, leaf, manager, partitions, plain, plan, run, shared};

/// Writes a file with row groups of a hundred rows that declares to be sorted by these columns.
fn write(path: &Path, batch: &RecordBatch, sorted: &[(i32, bool, bool)]) {
    let keys = sorted.iter().map(|&(column_idx, descending, nulls_first)| SortingColumn {
        column_idx,
        descending,
        nulls_first,
    });
    let keys: Vec<_> = keys.collect();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(100))
        .set_sorting_columns((!keys.is_empty()).then_some(keys))
        .build();
    write_parquet(path, batch, properties);
}

/// The columns `tens`, `id`, `float` and `text` of ids in the given order.
fn rows(ids: impl IntoIterator<Item = Option<i64>>) -> RecordBatch {
    let ids: Vec<_> = ids.into_iter().collect();
    let each =
        |value: fn(i64) -> i64| -> Int64Array { ids.iter().map(|id| id.map(value)).collect() };
    let floats = ids.iter().map(|id| id.map(|id| id as f64)).collect::<Float64Array>();
    let texts = ids.iter().map(|id| id.map(|id| format!("{id:05}"))).collect::<StringArray>();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("tens", Arc::new(each(|id| id / 10))),
        ("id", Arc::new(each(|id| id))),
        ("float", Arc::new(floats)),
        ("text", Arc::new(texts)),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, values)| (name, values, true)),
    )
    .unwrap()
}

const TENS: (i32, bool, bool) = (0, false, false);
const ID: (i32, bool, bool) = (1, false, false);
const FLOAT: (i32, bool, bool) = (2, false, false);
const TEXT: (i32, bool, bool) = (3, false, false);

async fn session(data: &Path) -> SessionContext {
    let context = shared(&manager(PolicyKind::Relevance));
    create(&context, "t", data).await;
    context
}

/// Whether a query sorts. Checks that its rows are those of plain DataFusion, which ignores the order that files
/// declare.
async fn sorts(context: &SessionContext, data: &Path, sql: &str) -> bool {
    let plain = plain();
    run(&plain, "SET datafusion.execution.collect_statistics = false").await;
    create(&plain, "t", data).await;
    assert_eq!(run(context, sql).await, run(&plain, sql).await, "{sql}");
    let text = explain(context, &format!("EXPLAIN {sql}")).await;
    let sorts = text.contains("SortExec");
    assert_eq!(sorts, text.contains("order=any"), "{text}");
    sorts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_used_where_a_plan_sorts_by_it_and_nowhere_else() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("a.parquet"), &rows((0..450).map(Some)), &[TENS, ID, TEXT]);
    write(&data.path().join("b.parquet"), &rows((450..900).map(Some)), &[TENS, ID]);
    let context = session(data.path()).await;
    for (sql, expected) in [
        ("SELECT * FROM t ORDER BY tens, id", false),
        ("SELECT id, tens FROM t ORDER BY tens", false),
        ("SELECT id + 1, tens AS x FROM t WHERE id % 7 <> 3 ORDER BY x, id", false),
        ("SELECT id FROM t ORDER BY tens, id LIMIT 5", false),
        ("SELECT tens FROM t ORDER BY tens DESC", true),
        ("SELECT id FROM t ORDER BY id", true),
        ("SELECT text FROM t ORDER BY tens, id, text", true),
        ("SELECT id FROM t WHERE id % 7 = 3 ORDER BY tens, id LIMIT 5", true),
    ] {
        assert_eq!(sorts(&context, data.path(), sql).await, expected, "{sql}");
    }
    let scan = leaf(&plan(&context, "SELECT sum(id) FROM t").await);
    assert_eq!(partitions(&scan), 4, "in no order, in parallel");
    run(&context, "SET datafusion.execution.collect_statistics = false").await;
    assert!(sorts(&context, data.path(), "SELECT id FROM t ORDER BY tens, id").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_may_be_descending_and_of_strings() {
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("a.parquet"), &rows((450..900).rev().map(Some)), &[(3, true, true)]);
    write(&data.path().join("b.parquet"), &rows((0..450).rev().map(Some)), &[(3, true, true)]);
    let context = session(data.path()).await;
    assert!(!sorts(&context, data.path(), "SELECT text FROM t ORDER BY text DESC").await);
    assert!(sorts(&context, data.path(), "SELECT text FROM t ORDER BY text").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_does_not_hold_for_all_files_is_not_used() {
    let nulls = |count: i64| (0..450 - count).map(Some).chain((0..count).map(|_| None));
    let swapped = || (100..200).chain(0..100).map(Some);
    for (name, first, second) in [
        (
            "files overlap",
            (rows((0..300).map(Some)), ID),
            (rows((299..500).map(|id| Some(id - 1))), ID),
        ),
        ("files descend", (rows((300..500).map(Some)), ID), (rows((0..300).map(Some)), ID)),
        ("row groups descend", (rows(swapped()), ID), (rows((300..500).map(Some)), ID)),
        ("there are nulls", (rows(nulls(1)), ID), (rows((450..500).map(Some)), ID)),
        ("floats", (rows((0..300).map(Some)), FLOAT), (rows((300..500).map(Some)), FLOAT)),
        ("other keys", (rows((0..300).map(Some)), ID), (rows((300..500).map(Some)), TENS)),
        (
            "other directions",
            (rows((0..300).map(Some)), ID),
            (rows((300..500).map(Some)), (1, false, true)),
        ),
    ] {
        let data = tempfile::tempdir().unwrap();
        write(&data.path().join("a.parquet"), &first.0, &[first.1]);
        write(&data.path().join("b.parquet"), &second.0, &[second.1]);
        let context = session(data.path()).await;
        for column in ["id", "float"] {
            let sql = format!("SELECT {column} FROM t ORDER BY {column}");
            assert!(sorts(&context, data.path(), &sql).await, "{name}");
        }
    }
    let data = tempfile::tempdir().unwrap();
    write(&data.path().join("a.parquet"), &rows((0..300).map(Some)), &[ID]);
    write(&data.path().join("b.parquet"), &rows((300..500).map(Some)), &[]);
    let context = session(data.path()).await;
    assert!(sorts(&context, data.path(), "SELECT id FROM t ORDER BY id").await, "one says nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nulls_sort_where_the_file_says() {
    let data = tempfile::tempdir().unwrap();
    let ids = (0..30).map(|_| None).chain((0..60).map(Some));
    write(&data.path().join("a.parquet"), &rows(ids), &[(1, false, true)]);
    let context = session(data.path()).await;
    assert!(!sorts(&context, data.path(), "SELECT id FROM t ORDER BY id NULLS FIRST").await);
    assert!(sorts(&context, data.path(), "SELECT id FROM t ORDER BY id").await);
}
