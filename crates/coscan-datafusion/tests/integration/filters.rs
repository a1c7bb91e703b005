//! Cheaper filters give the rows of the engine's, and look like them in EXPLAIN.

use std::sync::Arc;

use crate::support::{explain, manager, numbers_table, plain, run, set_partitions};
use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringViewArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use coscan_datafusion::CoscanOptions;
use coscan_runtime::core::PolicyKind;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;

const ROWS: i64 = 4_600;

/// The engine and coscan on a table of numbers.
async fn contexts() -> (tempfile::TempDir, [SessionContext; 2]) {
    let (data, _, coscan) = numbers_table(ROWS).await;
    let engine = plain();
    crate::support::create(&engine, "numbers", data.path()).await;
    (data, [engine, coscan])
}

#[tokio::test]
async fn rows_are_those_of_the_engine() {
    let (_data, contexts) = contexts().await;
    let queries = [
        "SELECT id FROM numbers WHERE id % 2 = 0 AND value > 10 AND id < 900",
        "SELECT value FROM numbers WHERE id % 100 = 3 AND value IS NOT NULL AND id > 50",
        "SELECT count(*) FROM numbers WHERE id >= 0 AND value >= 0",
        "SELECT id, value FROM numbers WHERE id % 7 = 1 AND (value > 100 OR id < 30) AND NULL",
        "SELECT id FROM numbers WHERE id % 1000 = 7 AND 5000 / id > 1",
        "SELECT id FROM numbers WHERE id % 3 = 0 AND id % 5 = 0 LIMIT 4",
        "SELECT id FROM numbers WHERE CAST(id AS DECIMAL(15, 2)) * CAST(key AS DECIMAL(15, 2)) > 40000 AND 5000 / id > 0",
        "SELECT id FROM numbers WHERE id % 3 = 0 AND id % 5 = 0 ORDER BY value DESC, id LIMIT 4",
        "SELECT a.id FROM numbers a JOIN numbers b ON a.id = b.value WHERE a.id % 9 = 0 AND b.id % 2 = 1",
    ];
    for batch_rows in [8_192, 100, 7] {
        for partitions in [1, 4] {
            for context in &contexts {
                set_partitions(context, partitions).await;
                run(context, &format!("SET datafusion.execution.batch_size = {batch_rows}")).await;
            }
            for sql in queries {
                let [engine, coscan] = &contexts;
                let mut theirs = run(engine, sql).await;
                let mut ours = run(coscan, sql).await;
                if sql.contains(" LIMIT 4") && !sql.contains("ORDER BY") {
                    assert_eq!(ours.len(), theirs.len(), "{sql}");
                    continue;
                }
                theirs.sort();
                ours.sort();
                assert_eq!(ours, theirs, "{sql}");
            }
        }
    }
}

/// The engine and coscan on the same table in memory.
fn contexts_with(schema: &SchemaRef, batches: &[RecordBatch]) -> [SessionContext; 2] {
    let contexts = [plain(), plain()];
    let manager = manager(PolicyKind::Relevance);
    CoscanOptions::new(&manager).install(&contexts[1]).unwrap();
    for context in &contexts {
        let table = MemTable::try_new(Arc::clone(schema), vec![batches.to_vec()]).unwrap();
        context.register_table("m", Arc::new(table)).unwrap();
    }
    contexts
}

#[tokio::test]
async fn few_rows_do_not_keep_the_texts_of_all() {
    let texts = (0..8192).map(|row| format!("a text of more than twelve bytes {row}"));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new((0..8192_i64).collect::<Int64Array>())),
        ("text", Arc::new(StringViewArray::from_iter_values(texts))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for context in contexts_with(&batch.schema(), &vec![batch.clone(); 200]) {
        let rows = context.sql("SELECT text FROM m WHERE id = 5").await.unwrap();
        let rows = rows.collect().await.unwrap();
        let bytes: usize = rows.iter().map(RecordBatch::get_array_memory_size).sum();
        assert!(bytes < 4 << 20, "{bytes} bytes");
    }
}

#[tokio::test]
async fn batches_of_a_stricter_nested_type_are_filtered() {
    let schema = |is_nullable| {
        let item = Field::new_list_field(DataType::Int64, is_nullable);
        Arc::new(Schema::new(vec![Field::new_list("xs", item, true)]))
    };
    let items = Arc::new((0..16_384_i64).collect::<Int64Array>());
    let item = Arc::new(Field::new_list_field(DataType::Int64, false));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths(vec![2; 8192]), items, None);
    let batch = RecordBatch::try_new(schema(false), vec![Arc::new(lists)]).unwrap();
    for context in contexts_with(&schema(true), &[batch]) {
        let count = "SELECT count(*) FROM m WHERE xs IS NOT NULL";
        assert_eq!(run(&context, count).await, ["8192"]);
    }
}

#[tokio::test]
async fn explain_shows_conditions_and_projections_as_the_engine_does() {
    let (_data, contexts) = contexts().await;
    let sql = "SELECT value FROM numbers WHERE id % 7 = 3 AND value > 5";
    let mut lines = Vec::new();
    for context in &contexts {
        let plan = explain(context, &format!("EXPLAIN {sql}")).await;
        let line =
            plan.lines().find(|line| line.contains("FilterExec:")).unwrap().trim().to_owned();
        lines.push(line);
    }
    assert_eq!(lines[0], lines[1]);
    let mut trees = Vec::new();
    for context in &contexts {
        run(context, "SET datafusion.explain.format = 'tree'").await;
        let tree = explain(context, &format!("EXPLAIN {sql}")).await;
        let filter = tree.lines().skip_while(|line| !line.contains("FilterExec")).take(5);
        trees.push(filter.map(str::to_owned).collect::<Vec<_>>());
        run(context, "SET datafusion.explain.format = 'indent'").await;
        run(context, "SET datafusion.explain.show_statistics = true").await;
        let plan = explain(context, &format!("EXPLAIN {sql}")).await;
        let filter = plan.lines().find(|line| line.contains("FilterExec:")).unwrap();
        assert!(filter.contains("Rows=Inexact("), "{filter}");
    }
    assert_eq!(trees[0], trees[1]);
    let plan = explain(&contexts[1], &format!("EXPLAIN ANALYZE {sql}")).await;
    let filter = plan.lines().find(|line| line.contains("FilterExec:")).unwrap();
    assert!(filter.contains("output_rows=") && filter.contains("selectivity="), "{filter}");
}
