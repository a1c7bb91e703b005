//! Tables of this server as foreign tables of a PostgreSQL server, beside its own tables.

use tokio_postgres::Client;

use crate::installed_postgresql::installed::PostgreSql;
use crate::support::server::{Running, start};
use crate::support::{PASSWORD, ROWS};

async fn with_foreign_tables(running: &Running) -> (PostgreSql, Client) {
    let server = PostgreSql::start().await;
    let client = server.connect().await;
    let port = running.at.port();
    let setup = format!(
        "CREATE EXTENSION postgres_fdw;
         CREATE SERVER coscan FOREIGN DATA WRAPPER postgres_fdw
             OPTIONS (host '127.0.0.1', port '{port}', dbname 'coscan', fetch_size '10000',
                      updatable 'false', truncatable 'false');
         CREATE USER MAPPING FOR CURRENT_USER SERVER coscan OPTIONS (user 'ann', password '{PASSWORD}');
         CREATE SCHEMA parquet;
         IMPORT FOREIGN SCHEMA public FROM SERVER coscan INTO parquet;
         CREATE TABLE names (id bigint PRIMARY KEY, name text);
         INSERT INTO names VALUES (1, 'one'), (2, 'two'), (40000, 'none')"
    );
    client.batch_execute(&setup).await.unwrap();
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn tables_are_imported_and_read_beside_those_of_postgresql() {
    let running = start().await;
    let (_server, client) = with_foreign_tables(&running).await;
    let imported =
        "SELECT string_agg(foreign_table_name, ',') FROM information_schema.foreign_tables";
    let imported: String = client.query_one(imported, &[]).await.unwrap().get(0);
    assert_eq!(imported, "numbers", "those that the user may read");
    let columns =
        "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position)
                   FROM information_schema.columns WHERE table_schema = 'parquet'";
    let columns: String = client.query_one(columns, &[]).await.unwrap().get(0);
    assert_eq!(columns, "id bigint, word text");
    // This server compares texts by their bytes, whatever the collation in PostgreSQL.
    let collation = "SELECT collation_name FROM information_schema.columns
                     WHERE table_schema = 'parquet' AND column_name = 'word'";
    let collation: String = client.query_one(collation, &[]).await.unwrap().get(0);
    assert_eq!(collation, "C");
    let before = "SELECT count(*) FROM parquet.numbers WHERE word < 'Z'";
    assert_eq!(client.query_one(before, &[]).await.unwrap().get::<_, i64>(0), 0);
    let copied = "CREATE TABLE copied AS SELECT * FROM parquet.numbers";
    client.batch_execute(copied).await.unwrap();
    let before = "SELECT count(*) FROM copied WHERE word < 'Z'";
    assert_eq!(client.query_one(before, &[]).await.unwrap().get::<_, i64>(0), 0);
    let count = "SELECT count(*), sum(id)::bigint FROM parquet.numbers";
    let row = client.query_one(count, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS, ROWS * (ROWS - 1) / 2));
    let joined = "SELECT name, word FROM names JOIN parquet.numbers USING (id) ORDER BY id";
    let rows = client.query(joined, &[]).await.unwrap();
    let rows: Vec<(String, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let row = |name: &str, word: &str| (name.to_owned(), word.to_owned());
    assert_eq!(rows, [row("one", "word 1"), row("two", "word 2")]);
    let own = client.query_one("SELECT word FROM parquet.numbers WHERE id = $1", &[&8_i64]).await;
    assert_eq!(own.unwrap().get::<_, String>(0), "word 1");
    let written = client.execute("INSERT INTO parquet.numbers VALUES (1, 'x')", &[]).await;
    let error = written.unwrap_err();
    let text = error.as_db_error().unwrap().message();
    assert!(text.contains("does not allow inserts"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL"]
async fn conditions_groups_joins_and_limits_are_pushed_down() {
    let running = start().await;
    let (_server, client) = with_foreign_tables(&running).await;
    // The costs decide where a join is made.
    let elsewhere =
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off";
    client.batch_execute(elsewhere).await.unwrap();
    for (sql, pushed) in [
        ("SELECT id FROM parquet.numbers WHERE id < 10 AND word LIKE 'word 1%'", "id < 10"),
        ("SELECT word, count(*) FROM parquet.numbers GROUP BY word", "GROUP BY 1"),
        ("SELECT id FROM parquet.numbers ORDER BY id DESC LIMIT 3", "LIMIT 3"),
        (
            "SELECT count(*) FROM parquet.numbers a JOIN parquet.numbers b ON a.id = b.id WHERE b.word = 'word 3'",
            "INNER JOIN",
        ),
    ] {
        let plan = client.simple_query(&format!("EXPLAIN VERBOSE {sql}")).await.unwrap();
        let plan: Vec<_> = plan
            .iter()
            .filter_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            })
            .collect();
        let remote = plan.iter().find(|line| line.contains("Remote SQL")).unwrap();
        assert!(remote.contains(pushed), "{sql}: {remote}");
        client.query(sql, &[]).await.unwrap();
    }
}
