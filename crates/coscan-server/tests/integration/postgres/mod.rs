//! The PostgreSQL protocol with a client of another project.

mod cancel;
mod changes;
mod copy;
mod limits;
mod parameters;
mod strangers;
mod values;

use crate::support::server::{self, Running, start, start_as, start_with_ann};
use crate::support::{HANG, PASSWORD, ROWS, in_time};
use coscan_server::Stopped;
use futures::TryStreamExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const LONG: &str = "SELECT a.id FROM numbers a, numbers b, numbers c";

/// A server for clients that implement the protocol themselves.
async fn without_passwords() -> Running {
    start_as(|config, _| server::without_passwords(config)).await
}

fn code(error: &tokio_postgres::Error) -> SqlState {
    error.code().unwrap_or_else(|| panic!("{error:?}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_comes_a_few_rows_at_a_time_within_a_transaction() {
    let running = start().await;
    let mut client = running.login("ann").await;
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM numbers", &[]).await.unwrap();
    let mut rows = 0;
    loop {
        let fetched = transaction.query_portal(&portal, 999).await.unwrap();
        rows += fetched.len();
        if fetched.len() < 999 {
            break;
        }
    }
    assert_eq!(i64::try_from(rows).unwrap(), ROWS);
    assert_eq!(running.server.sql_service().queries().counts(), (0, 0));
    transaction.commit().await.unwrap();
    // An unfinished portal ends with its transaction.
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind(LONG, &[]).await.unwrap();
    transaction.query_portal(&portal, 10).await.unwrap();
    assert_eq!(running.server.sql_service().queries().counts(), (1, 0));
    transaction.commit().await.unwrap();
    client.simple_query("SELECT 1").await.unwrap();
    assert_eq!(running.server.sql_service().queries().counts(), (0, 0));
}

/// The first column of a result of the simple protocol.
async fn texts(client: &Client, sql: &str) -> Result<Vec<String>, SqlState> {
    let messages = client.simple_query(sql).await.map_err(|error| code(&error))?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(rows.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_give_rows_in_pieces_until_their_transaction_ends() {
    let (running, client) = start_with_ann().await;
    let declare = "DECLARE c CURSOR FOR SELECT id FROM numbers ORDER BY id";
    assert_eq!(texts(&client, declare).await, Err(SqlState::NO_ACTIVE_SQL_TRANSACTION));
    client.batch_execute(&format!("BEGIN; {declare}")).await.unwrap();
    assert_eq!(texts(&client, "FETCH 2 FROM c").await.unwrap(), ["0", "1"]);
    let rows = client.query("FETCH NEXT FROM c", &[]).await.unwrap_err();
    assert_eq!(code(&rows), SqlState::FEATURE_NOT_SUPPORTED, "text before, binary now");
    client.batch_execute(&format!("ROLLBACK; BEGIN; {declare}")).await.unwrap();
    let rows = client.query("FETCH FORWARD 3 FROM c", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get::<_, i64>(0)).collect::<Vec<_>>(), [0, 1, 2]);
    let rows = client.query("FETCH ALL FROM c", &[]).await.unwrap();
    assert_eq!(i64::try_from(rows.len()).unwrap(), ROWS - 3);
    assert!(client.query("FETCH 1 FROM c", &[]).await.unwrap().is_empty());
    client.batch_execute("CLOSE c").await.unwrap();
    assert_eq!(texts(&client, "FETCH 1 FROM c").await, Err(SqlState::INVALID_CURSOR_NAME));
    client.batch_execute("ROLLBACK").await.unwrap();
    // The cursor ends with its transaction, and so does its query.
    client.batch_execute(&format!("BEGIN; DECLARE c CURSOR FOR {LONG}")).await.unwrap();
    assert_eq!(texts(&client, "FETCH 10 FROM c").await.unwrap().len(), 10);
    assert_eq!(running.server.sql_service().queries().counts(), (1, 0));
    client.batch_execute("COMMIT").await.unwrap();
    in_time(running.server.sql_service().queries().drained()).await;
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(texts(&client, "FETCH 1 FROM c").await, Err(SqlState::INVALID_CURSOR_NAME));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_with_hold_outlives_its_transaction_if_that_is_committed() {
    let (running, client) = start_with_ann().await;
    let declare = |name: &str| {
        format!("DECLARE {name} CURSOR WITH HOLD FOR SELECT id FROM numbers ORDER BY id")
    };
    client.batch_execute(&declare("a")).await.unwrap();
    assert_eq!(texts(&client, "FETCH 2 FROM a").await.unwrap(), ["0", "1"]);
    client.batch_execute(&format!("BEGIN; {}; COMMIT", declare("b"))).await.unwrap();
    client.batch_execute(&format!("BEGIN; {}; ROLLBACK", declare("c"))).await.unwrap();
    assert_eq!(texts(&client, "FETCH 1 FROM a").await.unwrap(), ["2"]);
    assert_eq!(texts(&client, "FETCH 1 FROM b").await.unwrap(), ["0"]);
    assert_eq!(texts(&client, "FETCH 1 FROM c").await, Err(SqlState::INVALID_CURSOR_NAME));
    client.batch_execute(&format!("{}; SELECT nothing", declare("D"))).await.unwrap_err();
    assert_eq!(texts(&client, "FETCH 1 FROM d").await, Err(SqlState::INVALID_CURSOR_NAME));
    client.batch_execute(&declare("D")).await.unwrap();
    assert_eq!(texts(&client, "FETCH 1 FROM d").await.unwrap(), ["0"]);
    client.batch_execute("CLOSE ALL").await.unwrap();
    in_time(running.server.sql_service().queries().drained()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_codes_and_end_a_transaction() {
    let (_running, client) = start_with_ann().await;
    for (sql, expected) in [
        ("SELEC 1", SqlState::SYNTAX_ERROR),
        ("SELECT * FROM nothing", SqlState::UNDEFINED_TABLE),
        ("SELECT * FROM secrets", SqlState::UNDEFINED_TABLE),
        ("SELECT nothing FROM numbers", SqlState::UNDEFINED_COLUMN),
        ("SELECT nothing(id) FROM numbers", SqlState::UNDEFINED_FUNCTION),
        ("SELECT 1 / (id - id) FROM numbers", SqlState::DIVISION_BY_ZERO),
        ("DROP TABLE numbers", SqlState::INSUFFICIENT_PRIVILEGE),
        ("SET nothing = 1", SqlState::UNDEFINED_OBJECT),
        ("SET coscan.weight = 9", SqlState::INVALID_PARAMETER_VALUE),
    ] {
        let error = client.simple_query(sql).await.unwrap_err();
        assert_eq!(code(&error), expected, "{sql}: {error:?}");
        let error = client.query(sql, &[]).await.unwrap_err();
        assert_eq!(code(&error), expected, "{sql}: {error:?}");
    }
    client.batch_execute("BEGIN; SELECT 1").await.unwrap();
    client.simple_query("SELECT * FROM nothing").await.unwrap_err();
    let error = client.simple_query("SELECT 1").await.unwrap_err();
    assert_eq!(code(&error), SqlState::IN_FAILED_SQL_TRANSACTION);
    client.batch_execute("ROLLBACK; SELECT 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_cancelled_while_it_streams_and_the_connection_goes_on() {
    let (_running, client) = start_with_ann().await;
    let none: [i64; 0] = [];
    let rows = client.query_raw(LONG, none).await.unwrap();
    let mut rows = std::pin::pin!(rows);
    rows.try_next().await.unwrap().unwrap();
    client.cancel_token().cancel_query(NoTls).await.unwrap();
    let error = loop {
        match rows.try_next().await {
            Ok(row) => assert!(row.is_some(), "it never ends by itself"),
            Err(error) => break error,
        }
    };
    assert_eq!(code(&error), SqlState::QUERY_CANCELED);
    let row = client.query_one("SELECT count(*) FROM numbers", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_cancelled_queries_give_up_their_threads() {
    let running = start().await;
    for _ in 0..8 {
        let client = running.login("ann").await;
        // The query would take hours.
        let sql = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id + b.id > c.id";
        let canceller = client.cancel_token();
        let query = tokio::spawn(async move { client.query(sql, &[]).await.map(|_| ()) });
        let other = running.login("ann").await;
        let sql =
            "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%c.id'";
        let seen =
            async { while other.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {} };
        in_time(seen).await;
        canceller.cancel_query(NoTls).await.unwrap();
        let cancelled = in_time(query).await;
        assert_eq!(code(&cancelled.unwrap().unwrap_err()), SqlState::QUERY_CANCELED);
        let answered = other.query_one("SELECT max(id) FROM numbers", &[]);
        let row = in_time(answered).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), ROWS - 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_come_with_the_login_and_in_sql() {
    let running = start().await;
    let mut config = running.config("ann", PASSWORD);
    config.options("-c statement_timeout=200 -c coscan.weight=1").application_name("test");
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    let shown = client.query_one("SHOW application_name", &[]).await.unwrap();
    assert_eq!(shown.get::<_, &str>(0), "test");
    let error = client.query(LONG, &[]).await.unwrap_err();
    assert_eq!(code(&error), SqlState::QUERY_CANCELED);
    let messages =
        client.simple_query("SHOW statement_timeout; SET TIME ZONE 'UTC'").await.unwrap();
    let shown = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    assert_eq!(shown, Some("200ms"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_runs_when_the_server_stops_gives_all_its_rows() {
    let running = start().await;
    let at = running.at;
    let (client, other) = (running.login("ann").await, running.login("bob").await);
    let none: [i64; 0] = [];
    // This is more than fits between the server and a client that does not read.
    let rows = client.query_raw("SELECT id, repeat(word, 500) FROM numbers", none).await.unwrap();
    let mut rows = std::pin::pin!(rows);
    rows.try_next().await.unwrap().unwrap();
    let (server, tables) = (running.server, running.tables);
    let stopping = tokio::spawn(server.stop(HANG, std::future::pending()));
    // Other clients get an error, and no client is admitted.
    let refused = async { while other.simple_query("SELECT 1").await.is_ok() {} };
    in_time(refused).await;
    let closed = async { while tokio::net::TcpStream::connect(at).await.is_ok() {} };
    in_time(closed).await;
    let mut count = 1;
    while rows.try_next().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, ROWS);
    let stopped = in_time(stopping).await.unwrap();
    assert_eq!(stopped, Stopped::Gracefully);
    drop(tables);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_password_is_refused() {
    let running = start().await;
    for (user, password) in [("ann", "wrong"), ("nobody", PASSWORD)] {
        let error = running.config(user, password).connect(NoTls).await.err().unwrap();
        assert_eq!(code(&error), SqlState::INVALID_PASSWORD);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_are_refused_without_a_look_at_them() {
    let running = start().await;
    let login = async |user: &str, password: &str| {
        running.config(user, password).connect(NoTls).await.map_err(|error| code(&error))
    };
    let _ann = running.login("ann").await;
    let mut codes = Vec::new();
    // Pauses grow until the next guess is too early, however slow this machine is.
    while codes.len() < 100 && codes.last() != Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
    {
        codes.push(login("bob", "wrong").await.err().unwrap());
    }
    assert!((6..100).contains(&codes.len()), "{codes:?}");
    assert_eq!(codes[0], SqlState::INVALID_PASSWORD);
    drop(login("ann", PASSWORD).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_get_the_same_answers() {
    let running = start().await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let client = running.login("bob").await;
        clients.spawn(async move {
            for _ in 0..4 {
                let sql = "SELECT word, count(*), sum(id) FROM numbers GROUP BY word ORDER BY word";
                let rows = client.query(sql, &[]).await.unwrap();
                assert_eq!(rows.len(), 7);
                let sum: i64 = rows.iter().map(|row| row.get::<_, i64>(2)).sum();
                assert_eq!(sum, ROWS * (ROWS - 1) / 2);
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    let drained = running.server.sql_service().queries().drained();
    in_time(drained).await;
}
