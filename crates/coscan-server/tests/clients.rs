//! The PostgreSQL protocol with clients that nobody here wrote: tokio-postgres, and psql where it is installed.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use coscan_server::Server;
use coscan_server::config::{Config, Listen, Memory, Tls};
use futures::TryStreamExt;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use support::{PASSWORD, ROWS, Tables};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

const LONG: &str = "SELECT a.id FROM numbers a, numbers b, numbers c";

struct Running {
    tables: Tables,
    server: Server,
    at: SocketAddr,
}

async fn start_with(tls: bool) -> Running {
    let tables = Tables::new();
    let directory = tables.directory.path();
    let users_file = directory.join("users.toml");
    std::fs::write(&users_file, Tables::users()).unwrap();
    let config = Config {
        tables: tables.locations.clone(),
        listen: Listen { postgres: Some("127.0.0.1:0".parse().unwrap()), flight: None },
        users_file: Some(users_file),
        tls: tls.then(|| certificate(directory)),
        memory: Memory { bytes: Some(256 << 20), pool_bytes: None },
        ..Config::default()
    };
    let server = Server::start(&config).await.unwrap();
    let at = server.postgres.unwrap();
    Running { tables, server, at }
}

async fn start() -> Running {
    start_with(false).await
}

fn certificate(directory: &Path) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: directory.join("c.pem"), key: directory.join("k.pem") };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    tls
}

impl Running {
    fn config(&self, user: &str, password: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.at.port()).user(user).password(password);
        config.dbname("coscan");
        config
    }

    async fn login(&self, user: &str) -> Client {
        let (client, connection) = self.config(user, PASSWORD).connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Runs psql; what it prints, and whether it succeeds. `None` where it is not installed.
    async fn psql(&self, user: &str, password: &str, commands: &[&str]) -> Option<(bool, String)> {
        let mut psql = std::process::Command::new("psql");
        let url = format!("postgresql://{user}@127.0.0.1:{}/coscan", self.at.port());
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", &url]);
        psql.env("PGPASSWORD", password).stdin(Stdio::null());
        for command in commands {
            psql.args(["--command", command]);
        }
        let output = tokio::task::spawn_blocking(move || psql.output()).await.unwrap();
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("{error}"),
        };
        let text = [output.stdout, output.stderr].concat();
        Some((output.status.success(), String::from_utf8(text).unwrap()))
    }
}

fn code(error: &tokio_postgres::Error) -> SqlState {
    error.code().unwrap_or_else(|| panic!("{error:?}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_have_parameters_of_all_sorts() {
    let running = start().await;
    let client = running.login("ann").await;
    let sql = "SELECT id, word FROM numbers WHERE id BETWEEN $1 AND $2 AND word = $3 ORDER BY id";
    let statement = client.prepare(sql).await.unwrap();
    for first in [0_i64, 7, 70] {
        let rows = client.query(&statement, &[&first, &(first + 14), &"word 3"]).await.unwrap();
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(ids, [first + 3, first + 10]);
        assert_eq!(rows[0].get::<_, &str>("word"), "word 3");
    }
    let row = client
        .query_one(
            "SELECT $1::int, $2::double precision, $3::text, $4::boolean, $5::bigint",
            &[&42_i32, &0.5_f64, &"x", &true, &None::<i64>],
        )
        .await
        .unwrap();
    assert_eq!(row.get::<_, i32>(0), 42);
    assert_eq!(row.get::<_, f64>(1), 0.5);
    assert_eq!(row.get::<_, &str>(2), "x");
    assert!(row.get::<_, bool>(3));
    assert_eq!(row.get::<_, Option<i64>>(4), None);
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
    assert_eq!(running.server.engine().queries().counts(), (0, 0));
    transaction.commit().await.unwrap();
    // A portal that is left unfinished ends with its transaction.
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind(LONG, &[]).await.unwrap();
    transaction.query_portal(&portal, 10).await.unwrap();
    assert_eq!(running.server.engine().queries().counts(), (1, 0));
    transaction.commit().await.unwrap();
    client.simple_query("SELECT 1").await.unwrap();
    assert_eq!(running.server.engine().queries().counts(), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_codes_and_end_a_transaction() {
    let running = start().await;
    let client = running.login("ann").await;
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
    let running = start().await;
    let client = running.login("ann").await;
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
async fn clients_are_answered_while_queries_keep_all_their_threads_busy() {
    let running = start().await;
    let client = running.login("ann").await;
    // Its joins do not yield for minutes.
    let busy = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.id + b.id > c.id";
    let canceller = client.cancel_token();
    let query = tokio::spawn(async move { client.query(busy, &[]).await.map(|_| ()) });
    let other = running.login("ann").await;
    let sql = "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%c.id'";
    while other.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    canceller.cancel_query(NoTls).await.unwrap();
    let cancelled = tokio::time::timeout(Duration::from_secs(60), query).await.unwrap();
    assert_eq!(code(&cancelled.unwrap().unwrap_err()), SqlState::QUERY_CANCELED);
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
async fn a_wrong_password_is_refused() {
    let running = start().await;
    for (user, password) in [("ann", "wrong"), ("nobody", PASSWORD)] {
        let error = running.config(user, password).connect(NoTls).await.err().unwrap();
        assert_eq!(code(&error), SqlState::INVALID_PASSWORD);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_encrypted_with_the_certificate_of_the_moment() {
    let running = start_with(true).await;
    let error = running.config("ann", PASSWORD).connect(NoTls).await.err().unwrap();
    assert_eq!(code(&error), SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    let directory = running.tables.directory.path();
    let first = std::fs::read(directory.join("c.pem")).unwrap();
    login_with_tls(&running, &first).await.unwrap();
    // Another certificate, without a restart.
    let tls = certificate(directory);
    let config = Config {
        tables: running.tables.locations.clone(),
        listen: Listen { postgres: Some("127.0.0.1:0".parse().unwrap()), flight: None },
        users_file: Some(directory.join("users.toml")),
        tls: Some(tls.clone()),
        ..Config::default()
    };
    running.server.reload(&config).await.unwrap();
    let second = std::fs::read(directory.join("c.pem")).unwrap();
    assert!(login_with_tls(&running, &first).await.is_err());
    login_with_tls(&running, &second).await.unwrap();
    // A wrong one is refused, and changes nothing.
    std::fs::write(&tls.key, "no key").unwrap();
    assert!(running.server.reload(&config).await.is_err());
    login_with_tls(&running, &second).await.unwrap();
}

/// Logs in over TLS, trusting this certificate only.
async fn login_with_tls(running: &Running, pem: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(pem)?)?;
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut tcp = TcpStream::connect(running.at).await?;
    tokio::io::AsyncWriteExt::write_all(&mut tcp, &[0, 0, 0, 8, 4, 210, 22, 47]).await?;
    assert_eq!(tokio::io::AsyncReadExt::read_u8(&mut tcp).await?, b'S');
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(client));
    let stream = connector.connect(ServerName::try_from("localhost")?, tcp).await?;
    let (client, connection) = running.config("ann", PASSWORD).connect_raw(stream, NoTls).await?;
    tokio::spawn(connection);
    client.simple_query("SELECT count(*) FROM numbers").await?;
    Ok(())
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
    let drained = running.server.engine().queries().drained();
    tokio::time::timeout(Duration::from_secs(60), drained).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn psql_runs_queries_and_lists_granted_tables_only() {
    let running = start().await;
    let commands = [
        "SELECT count(*) FROM numbers",
        "\\d",
        "\\dt",
        "\\d numbers",
        "\\d+ numbers",
        "\\dt+",
        "\\dn",
        "\\l",
        "SELECT current_user",
    ];
    let Some((succeeded, text)) = running.psql("ann", PASSWORD, &commands).await else {
        // The other tests here need no psql; the README's commands were run with it.
        eprintln!("psql is not installed");
        return;
    };
    assert!(succeeded, "{text}");
    assert!(text.starts_with("30000\n"), "{text}");
    assert!(text.contains("public|numbers|table") && !text.contains("secrets"), "{text}");
    assert!(text.contains("word|") && text.ends_with("ann\n"), "{text}");
    let (succeeded, text) = running.psql("ann", "wrong", &["SELECT 1"]).await.unwrap();
    assert!(!succeeded && text.contains("password authentication failed"), "{text}");
}
