//! Results of COPY.

use futures::TryStreamExt;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::postgres::code;
use crate::support::server::start_with_ann;

async fn copied(client: &Client, sql: &str) -> Result<Vec<u8>, SqlState> {
    let stream = client.copy_out(sql).await.map_err(|error| code(&error))?;
    let parts: Vec<_> = stream.try_collect().await.map_err(|error| code(&error))?;
    Ok(parts.concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_copied_as_text_csv_and_binary() {
    let (_running, client) = start_with_ann().await;
    let values = r#"SELECT * FROM (VALUES (1, E'a\tb\\c\nd', -1.5), (2, NULL, NULL), (3, 'x,"y"', 0.5), (4, '', 1)) v(i, t, f) ORDER BY 1"#;
    let text = "1\ta\\tb\\\\c\\nd\t-1.5\n2\t\\N\t\\N\n3\tx,\"y\"\t0.5\n4\t\t1\n";
    let csv = "i,t,f\n1,\"a\tb\\c\nd\",-1.5\n2,,\n3,\"x,\"\"y\"\"\",0.5\n4,\"\",1\n";
    for (sql, expected) in [
        (format!("COPY ({values}) TO STDOUT"), text),
        (format!("COPY ({values}) TO STDOUT (FORMAT text)"), text),
        (format!("COPY ({values}) TO STDOUT WITH (FORMAT csv, HEADER)"), csv),
        (format!("COPY ({values}) TO STDOUT WITH CSV HEADER"), csv),
        (
            format!("COPY ({values} LIMIT 2) TO STDOUT (FORMAT csv, DELIMITER ';', NULL '-')"),
            "1;\"a\tb\\c\nd\";-1.5\n2;-;-\n",
        ),
        ("COPY (SELECT 1 WHERE false) TO STDOUT".to_owned(), ""),
    ] {
        let copied = copied(&client, &sql).await.unwrap();
        assert_eq!(String::from_utf8(copied).unwrap(), expected, "{sql}");
    }
    let all = copied(&client, "COPY numbers (id) TO STDOUT").await.unwrap();
    assert_eq!(all.iter().filter(|byte| **byte == b'\n').count(), 30_000);
    let binary =
        copied(&client, "COPY (SELECT 7::bigint, NULL::int) TO STDOUT BINARY").await.unwrap();
    let row = b"\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\xff\xff\xff\xff";
    let expected = [&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..], row, b"\xff\xff"].concat();
    assert_eq!(binary, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_else_is_copied() {
    let (_running, client) = start_with_ann().await;
    for (sql, expected) in [
        ("COPY secrets TO STDOUT", SqlState::UNDEFINED_TABLE),
        ("COPY numbers FROM STDIN", SqlState::INSUFFICIENT_PRIVILEGE),
        ("COPY numbers TO '/tmp/x'", SqlState::FEATURE_NOT_SUPPORTED),
        ("COPY numbers TO PROGRAM 'cat'", SqlState::FEATURE_NOT_SUPPORTED),
        ("COPY numbers TO STDOUT (FORMAT parquet)", SqlState::INVALID_TEXT_REPRESENTATION),
        ("COPY numbers TO STDOUT (FORMAT csv, FORCE_QUOTE *)", SqlState::SYNTAX_ERROR),
    ] {
        assert_eq!(copied(&client, sql).await.unwrap_err(), expected, "{sql}");
    }
    client.batch_execute("SELECT 1").await.unwrap();
}
