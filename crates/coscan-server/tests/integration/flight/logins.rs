//! Logins, tokens, sessions.

use std::time::Duration;

use arrow::array::AsArray;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any,
    CommandPreparedStatementQuery, ProstMessageExt,
};
use arrow_flight::{Action, FlightDescriptor};
use futures::TryStreamExt;
use prost::Message;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tonic::{Code, Status};

use crate::flight::client::{
    Client, all, code, error, login, query, request, start, start_flight, start_with_ann, stranger,
};
use crate::support::server::without_passwords;
use crate::support::{PASSWORD, in_time};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_need_a_login_that_is_right_and_has_not_expired() {
    let running = start().await;
    let mut client = stranger(&running).await;
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
    for (user, password) in [("ann", "wrong"), ("nobody", PASSWORD), ("", "")] {
        let error = client.handshake(user, password).await.unwrap_err();
        assert_eq!(code(&error), Code::Unauthenticated, "{user}");
    }
    client.set_token("c29tZXRoaW5n".to_owned());
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
    assert!(client.get_catalogs().await.is_err());
    let mut ann = login(&running, "ann").await;
    query(&mut ann, "SELECT 1").await;
    let users = running.tables.directory.path().join("users.toml");
    let without_ann = std::fs::read_to_string(&users).unwrap().replace("ann", "anna");
    std::fs::write(&users, without_ann).unwrap();
    running.server.sql_service().users().reload().unwrap();
    assert_eq!(code(&error(&mut ann, "SELECT 1").await), Code::Unauthenticated);
    query(&mut login(&running, "bob").await, "SELECT 1").await;

    let expiring =
        start_flight(|config| config.limits.token_lifetime = Duration::from_nanos(1)).await;
    let mut client = login(&expiring, "ann").await;
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_end_with_what_their_user_was_granted() {
    let running = start().await;
    let mut root = login(&running, "root").await;
    let info = root.execute("SELECT count(*) FROM system.queries".to_owned(), None).await.unwrap();
    all(&mut root, &info).await;
    let users = running.tables.directory.path().join("users.toml");
    let without_admin =
        std::fs::read_to_string(&users).unwrap().replace("admin = true", "admin = false");
    std::fs::write(&users, without_admin).unwrap();
    running.server.sql_service().users().reload().unwrap();
    let mut root = login(&running, "root").await;
    let refused = root.do_get(info.endpoint[0].ticket.clone().unwrap()).await.err().unwrap();
    assert!(refused.to_string().contains("the ticket is unknown"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_end_with_what_their_user_was_granted() {
    let running = start().await;
    let mut ann = login(&running, "ann").await;
    let mut bob = login(&running, "bob").await;
    let (of_ann, of_bob) = (prepare(&mut ann, "numbers").await, prepare(&mut bob, "secrets").await);
    let users = running.tables.directory.path().join("users.toml");
    let text = std::fs::read_to_string(&users).unwrap();
    // Ann's entry lists tables already, so that Bob's is the first with all of them.
    let less = text.replacen("tables = \"*\"", "tables = [\"numbers\"]", 1);
    assert_ne!(less, text);
    std::fs::write(&users, less).unwrap();
    running.server.sql_service().users().reload().unwrap();
    let mut bob = login(&running, "bob").await;
    let refused = run_prepared(&mut bob, &of_bob).await.err().unwrap();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    error(&mut bob, "SELECT count(*) FROM secrets").await;
    // Nothing has changed for Ann.
    run_prepared(&mut ann, &of_ann).await.unwrap();
}

/// Prepares a query on a table. Returns its handle.
async fn prepare(client: &mut Client, table: &str) -> CommandPreparedStatementQuery {
    let query = format!("SELECT count(*) FROM {table}");
    let body = ActionCreatePreparedStatementRequest { query, transaction_id: None };
    let action = Action::new("CreatePreparedStatement", body.as_any().encode_to_vec());
    let mut results = client.do_action(request(client, action)).await.unwrap();
    let result = Any::decode(results.try_next().await.unwrap().unwrap().body).unwrap();
    let result: ActionCreatePreparedStatementResult = result.unpack().unwrap().unwrap();
    CommandPreparedStatementQuery { prepared_statement_handle: result.prepared_statement_handle }
}

async fn run_prepared(
    client: &mut Client,
    statement: &CommandPreparedStatementQuery,
) -> Result<(), Status> {
    let descriptor = FlightDescriptor::new_cmd(statement.as_any().encode_to_vec());
    let described = request(client, descriptor);
    client.inner_mut().get_flight_info(described).await.map(|_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused_before_their_messages_are_read() {
    let running = start_flight(|config| config.limits.message_bytes_max = 1024).await;
    let large = "SELECT 1 -- ".to_owned() + &"x".repeat(2000);
    let mut client = stranger(&running).await;
    assert_eq!(code(&error(&mut client, &large).await), Code::Unauthenticated);
    let mut client = login(&running, "ann").await;
    assert_eq!(code(&error(&mut client, &large).await), Code::OutOfRange);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_logins_are_slowed_down() {
    let running = start().await;
    let mut client = stranger(&running).await;
    let mut is_refused = async |password| {
        let refused = client.handshake("ann", password).await.err();
        refused.is_some_and(|error| error.to_string().contains("too many logins"))
    };
    // There are several attempts, since the pause may be over before the right password arrives.
    for _ in 0..100 {
        if is_refused("wrong").await && is_refused(PASSWORD).await {
            return;
        }
    }
    panic!("wrong passwords have no effect on later logins");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_over_which_nobody_logs_in_ends() {
    let running = start_flight(|config| config.limits.login_max = Duration::from_secs(3)).await;
    let at = running.server.flight.unwrap();
    let mut client = login(&running, "ann").await;
    let mut silent = TcpStream::connect(at).await.unwrap();
    in_time(silent.read_to_end(&mut Vec::new())).await.ok();
    // This session is older than the one that has ended.
    query(&mut client, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_users_nobody_has_to_log_in() {
    let running = start_flight(without_passwords).await;
    let mut client = stranger(&running).await;
    query(&mut client, "SET statement_timeout = '7s'").await;
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "7000ms");
    let shown = query(&mut stranger(&running).await, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "0");
    client.handshake("ann", "").await.unwrap();
    let name = query(&mut client, "SHOW session_authorization").await;
    assert_eq!(name.column(0).as_string::<i32>().value(0), "ann");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_when_its_client_says_so() {
    let (_running, mut client) = start_with_ann().await;
    query(&mut client, "SELECT 1").await;
    let mut closed = client.do_action(Action::new("CloseSession", "")).await.unwrap();
    assert_eq!(closed.try_next().await.unwrap().unwrap().body, [8, 1][..]);
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_options_are_settings() {
    let (_running, mut client) = start_with_ann().await;
    // {"statement_timeout": "3s", "catalog": "other"}
    let entries = [("statement_timeout", "3s"), ("catalog", "other")].map(|(name, value)| {
        let value = [&[10, value.len() as u8], value.as_bytes()].concat();
        let name = [&[10, name.len() as u8], name.as_bytes()].concat();
        let entry = [&name[..], &[18, value.len() as u8], &value].concat();
        [&[10, entry.len() as u8], &entry[..]].concat()
    });
    let mut set =
        client.do_action(Action::new("SetSessionOptions", entries.concat())).await.unwrap();
    let refused = set.try_next().await.unwrap().unwrap().body;
    // {"catalog": INVALID_VALUE}
    assert_eq!(refused, [&[10, 13, 10, 7][..], b"catalog", &[18, 2, 8, 2]].concat());
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "3000ms");
    let mut all = client.do_action(Action::new("GetSessionOptions", "")).await.unwrap();
    let all = all.try_next().await.unwrap().unwrap().body;
    assert!(all.windows(17).any(|window| window == b"statement_timeout"));
}
