//! Statements, prepared or not: rows, types, settings.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, ListArray, RecordBatch,
    TimestampMicrosecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow_flight::error::FlightError;
use tonic::Code;

use crate::flight::client::{
    Client, all, code, drained, error, login, query, row, start, start_with_ann,
};
use crate::support::ROWS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_returns_its_rows_with_types_that_clients_read() {
    let (_running, mut client) = start_with_ann().await;
    let rows = query(&mut client, "SELECT id, word FROM numbers ORDER BY id").await;
    let ids = rows.column(0).as_primitive::<Int64Type>();
    assert!(ids.values().iter().copied().eq(0..ROWS));
    assert_eq!(rows.schema().field(1).data_type(), &DataType::Utf8);
    assert_eq!(rows.column(1).as_string::<i32>().value(9), "word 2");
    let sql = "SELECT DATE '2024-02-29' AS d, CAST(1.5 AS DECIMAL(10, 2)) AS m, TIMESTAMP '2024-02-29T12:00:00' AS t, \
               CAST(NULL AS BIGINT) AS n, ARRAY['a long text, longer than a view has room for', NULL] AS l";
    let rows = query(&mut client, sql).await;
    assert!(rows.column(3).is_null(0));
    let list = rows.column(4).as_list::<i32>().value(0);
    assert_eq!(list.as_string::<i32>().value(0).len(), 44);
    let none = query(&mut client, "SELECT id, word FROM numbers WHERE id < 0").await;
    assert_eq!((none.num_rows(), none.num_columns()), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_last_as_long_as_a_login() {
    let (running, mut client) = start_with_ann().await;
    // Clients may fetch a statement without rows late, or never.
    let info = client.execute("SET statement_timeout = '1s'".to_owned(), None).await.unwrap();
    client.execute("SET statement_timeout = '7s'".to_owned(), None).await.unwrap();
    assert_eq!(all(&mut client, &info).await.num_columns(), 0);
    assert_eq!(
        client.execute_update("SET coscan.memory_limit = '1MB'".to_owned(), None).await.unwrap(),
        0
    );
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "7000ms");
    let shown = query(&mut client, "SHOW coscan.memory_limit").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "1000000");
    let shown = query(&mut login(&running, "ann").await, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "0");
}

/// Runs a statement with two numbers and a word as parameters.
async fn run_prepared(client: &mut Client, sql: &str) {
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    assert_eq!(statement.dataset_schema().unwrap().fields().len(), 2);
    let types: Vec<_> = statement
        .parameter_schema()
        .unwrap()
        .fields()
        .iter()
        .map(|f| f.data_type().clone())
        .collect();
    assert_eq!(types, [DataType::Int64, DataType::Int64, DataType::Utf8]);
    for first in [0_i64, 7, 70] {
        statement.set_parameters(row(&[first, first + 14], "word 3")).unwrap();
        let info = statement.execute().await.unwrap();
        let rows = all(client, &info).await;
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[first + 3, first + 10]);
    }
    // These are two rows, too few values, and values of other types.
    let two = concat_batches(&row(&[1, 2], "a").schema(), [&row(&[1, 2], "a"), &row(&[3, 4], "b")]);
    for (wrong, expected) in [
        (two.unwrap(), Code::Unimplemented),
        (row(&[1], "word 3"), Code::InvalidArgument),
        (row(&[1, 2, 3], "word 3"), Code::InvalidArgument),
    ] {
        statement.set_parameters(wrong).unwrap();
        assert_eq!(code(&statement.execute().await.unwrap_err()), expected);
    }
    statement.close().await.unwrap();
    assert_eq!(code(&error(client, sql).await), Code::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_have_parameters_of_all_sorts() {
    let (_running, mut client) = start_with_ann().await;
    for places in [["$1", "$2", "$3"], ["?"; 3]] {
        let [from, to, word] = places;
        let sql = format!(
            "SELECT id, word FROM numbers WHERE id BETWEEN {from} AND {to} AND word={word} ORDER BY id"
        );
        run_prepared(&mut client, &sql).await;
    }
    // A parameter whose type is not determined takes the type of its value.
    let mut free = client.prepare("SELECT $1 AS x".to_owned(), None).await.unwrap();
    let value: ArrayRef = Arc::new(Int64Array::from(vec![42]));
    free.set_parameters(RecordBatch::try_from_iter([("x", value)]).unwrap()).unwrap();
    let info = free.execute().await.unwrap();
    assert_eq!(all(&mut client, &info).await.column(0).as_primitive::<Int64Type>().value(0), 42);
    free.close().await.unwrap();
}

/// The number that a statement with one parameter returns for a value.
async fn number(client: &mut Client, sql: &str, value: ArrayRef) -> Result<i64, FlightError> {
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    statement.set_parameters(RecordBatch::try_from_iter([("x", value)]).unwrap()).unwrap();
    let info = statement.execute().await?;
    let number = all(client, &info).await.column(0).as_primitive::<Int64Type>().value(0);
    statement.close().await.unwrap();
    Ok(number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_their_column_cannot_hold_are_not_rounded() {
    let (_running, mut client) = start_with_ann().await;
    let decimal =
        |value| Decimal128Array::from(vec![value]).with_precision_and_scale(10, 3).unwrap();
    let time = || TimestampMicrosecondArray::from(vec![1_500]);
    for (column, value, expected) in [
        ("id", Arc::new(Float64Array::from(vec![1.5])) as ArrayRef, 2),
        ("id", Arc::new(Float64Array::from(vec![1e30])), ROWS),
        ("id", Arc::new(decimal(1_500)), 2),
        ("CAST(id AS INT)", Arc::new(Int64Array::from(vec![1 << 40])), ROWS),
        ("CAST(id AS DECIMAL(9, 2))", Arc::new(decimal(2_005)), 3),
        ("CAST(arrow_cast(id, 'Timestamp(Millisecond, None)') AS DATE)", Arc::new(time()), ROWS),
        ("arrow_cast(id, 'Timestamp(Nanosecond, None)')", Arc::new(time()), ROWS),
    ] {
        let sql = format!("SELECT count(*) FROM numbers WHERE {column} < $1");
        assert_eq!(number(&mut client, &sql, value).await.unwrap(), expected, "{column}");
    }
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None, Some(5)])]);
    let sql = "SELECT count(*) FROM numbers WHERE id = ANY($1)";
    assert_eq!(number(&mut client, sql, Arc::new(list)).await.unwrap(), 2);
    let list = ListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(1.0), Some(1.5)])]);
    let error = number(&mut client, sql, Arc::new(list)).await.unwrap_err();
    assert_eq!(code(&error), Code::InvalidArgument, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_get_the_same_answers() {
    let running = start().await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut client = login(&running, "bob").await;
        clients.spawn(async move {
            for _ in 0..4 {
                let rows = query(&mut client, "SELECT id, word FROM secrets").await;
                let sum: i64 = rows.column(0).as_primitive::<Int64Type>().values().iter().sum();
                assert_eq!(sum, ROWS * (ROWS - 1) / 2);
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    drained(&running).await;
}
