//! Statements on the catalog that clients send when they connect and browse. Each client has a file, whose first line
//! has the version, and how the statements were recorded. Values replace parameters. The statements of DBeaver and
//! Metabase have the form that they send. Each statement has a first line `-- NAME: ROWS rows of COLUMNS columns`, or
//! `-- NAME: answers` where the rows differ from those of PostgreSQL with the same tables.

use arrow::array::AsArray;
use coscan_server::queries::QueryError;
use coscan_server::sql::{Session, Sql};
use datafusion::common::ParamValues;
use futures::TryStreamExt;

use crate::sql::fixture::Fixture;

macro_rules! files {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("catalog/", $name, ".sql")))),*] };
}

/// The clients, with the files of their statements.
const FILES: [(&str, &str); 20] = files![
    "activerecord",
    "adbc",
    "asyncpg",
    "dbeaver",
    "dbt",
    "django",
    "drizzle",
    "go",
    "knex",
    "metabase",
    "pgadmin",
    "pgcli",
    "pgjdbc",
    "psql",
    "psqlodbc",
    "psycopg",
    "sequelize",
    "sqlalchemy",
    "superset",
    "typeorm"
];

/// The number of the table `numbers` in recorded statements.
const RECORDED_OID: &str = "16386";

/// The name, the expected shape and the SQL of each statement.
fn statements(
    file: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let first_line = |text: &'static str| text.split_once('\n').unwrap();
    let file = if file.starts_with("-- # ") { first_line(file).1 } else { file };
    file.split("\n;\n").filter(|text| !text.trim().is_empty()).map(move |text| {
        let (header, sql) = first_line(text.trim());
        let (name, shape) = header.strip_prefix("-- ").unwrap().rsplit_once(": ").unwrap();
        (name, shape, sql)
    })
}

/// The shape of the result.
async fn shape(fixture: &Fixture, ann: &Session, sql: &str) -> Result<String, QueryError> {
    let planned = fixture.service.plan(ann, Sql::Text(sql)).await?;
    let columns = planned.schema.fields().len();
    let query = fixture.service.run(ann, planned, ParamValues::List(Vec::new())).await?;
    let batches: Vec<_> = query.try_collect().await?;
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    Ok(format!("{rows} rows of {columns} columns"))
}

#[tokio::test]
async fn statements_of_clients_on_the_catalog_have_the_expected_shape() {
    let (fixture, ann) = Fixture::with_ann().await;
    let oid = "SELECT arrow_cast(oid, 'Int64') FROM pg_class WHERE relname = 'numbers'";
    let oid = fixture.number(&ann, oid).await.to_string();
    let mut wrong = Vec::new();
    let all = FILES.into_iter().flat_map(|(client, file)| {
        statements(file).map(move |(name, expected, sql)| (client, name, expected, sql))
    });
    for (client, name, expected, sql) in all {
        let seen = shape(&fixture, &ann, &sql.replace(RECORDED_OID, &oid)).await;
        let is_right = seen.as_ref().is_ok_and(|seen| expected == "answers" || seen == expected);
        if !is_right {
            wrong.push(format!("{client}: -- {name}: {expected}; it is: {seen:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn queries_on_tables_of_users_are_not_taken_for_catalog_queries() {
    let (fixture, ann) = Fixture::with_ann().await;
    // A catalog table without rows is joined with a table that has some.
    let sql = "SELECT count(*) FROM numbers LEFT JOIN pg_catalog.pg_index ON indrelid = id";
    assert_eq!(fixture.number(&ann, sql).await, crate::support::ROWS);
    let sql = "SELECT count(*) FROM pg_catalog.pg_index";
    assert_eq!(fixture.number(&ann, sql).await, 0, "an aggregate has a row");
}

#[tokio::test]
async fn json_objects_have_the_form_of_postgresql() {
    let (fixture, ann) = Fixture::with_ann().await;
    let sql = r#"SELECT json_build_object('a', 1, 'b"', -2.5, 'c', 'x "y"', 'd', true, 'e', NULL, 'f', word)
                 FROM numbers WHERE id IN (1, 2) ORDER BY id"#;
    let rows = fixture.rows(&ann, sql).await.unwrap();
    let texts: Vec<_> =
        rows.iter().flat_map(|batch| batch.column(0).as_string::<i32>().iter().flatten()).collect();
    let object = |word: &str| {
        format!(
            r#"{{"a" : 1, "b\"" : -2.5, "c" : "x \"y\"", "d" : true, "e" : null, "f" : "{word}"}}"#
        )
    };
    assert_eq!(texts, [object("word 1"), object("word 2")]);
    fixture.error(&ann, "SELECT json_build_object('a')").await;
    fixture.error(&ann, "SELECT json_build_object(NULL, 1)").await;
}
