//! Metadata of tables and of the server.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::DataType;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo, SqlInfo,
};

use crate::flight::client::{all, login, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_tells_what_a_user_was_granted_and_nothing_else() {
    let running = start().await;
    let (mut ann, mut bob) = (login(&running, "ann").await, login(&running, "bob").await);
    let info = ann.get_catalogs().await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 0), ["coscan"]);
    let schemas =
        CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("pu%".to_owned()) };
    let info = ann.get_db_schemas(schemas).await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 1), ["public"]);
    let tables = |types: &[&str], include_schema| CommandGetTables {
        catalog: Some("coscan".to_owned()),
        db_schema_filter_pattern: None,
        table_name_filter_pattern: Some("%s".to_owned()),
        table_types: types.iter().map(|name| (*name).to_owned()).collect(),
        include_schema,
    };
    let info = ann.get_tables(tables(&["TABLE"], false)).await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 2), ["numbers"]);
    let info = bob.get_tables(tables(&["TABLE"], true)).await.unwrap();
    let rows = all(&mut bob, &info).await;
    assert_eq!(strings(&rows, 2), ["numbers", "secrets"]);
    let schema = rows.column(4).as_binary::<i32>().value(0);
    let schema = arrow_flight::IpcMessage(schema.to_vec().into());
    let schema = arrow::datatypes::Schema::try_from(schema).unwrap();
    assert_eq!(schema.field_with_name("word").unwrap().data_type(), &DataType::Utf8);
    let info = ann.get_tables(tables(&["SYSTEM TABLE"], true)).await.unwrap();
    assert!(strings(&all(&mut ann, &info).await, 2).contains(&"queries".to_owned()));
    let info = ann.get_table_types().await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 0), ["SYSTEM TABLE", "TABLE"]);
    let info = ann.get_sql_info(vec![SqlInfo::FlightSqlServerReadOnly]).await.unwrap();
    assert_eq!(all(&mut ann, &info).await.num_rows(), 1);
    let info = ann.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None }).await.unwrap();
    assert!(strings(&all(&mut ann, &info).await, 0).contains(&"BIGINT".to_owned()));
    let keys =
        CommandGetPrimaryKeys { catalog: None, db_schema: None, table: "numbers".to_owned() };
    let info = ann.get_primary_keys(keys).await.unwrap();
    let rows = all(&mut ann, &info).await;
    assert_eq!((rows.num_rows(), rows.num_columns()), (0, 6));
}

fn strings(rows: &RecordBatch, column: usize) -> Vec<String> {
    rows.column(column).as_string::<i32>().iter().flatten().map(str::to_owned).collect()
}
