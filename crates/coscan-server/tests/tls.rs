//! The PostgreSQL protocol within TLS.
#![allow(clippy::unwrap_used)]

mod support;

use coscan_server::config::{Config, Listen};
use rustls::pki_types::ServerName;
use support::PASSWORD;
use support::server::{Running, certificate, start_with, trusting};
use tokio::net::TcpStream;
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_encrypted_with_the_certificate_of_the_moment() {
    let running = start_with(true).await;
    let error = running.config("ann", PASSWORD).connect(NoTls).await.err().unwrap();
    assert_eq!(error.code(), Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION));
    let directory = running.tables.directory.path();
    let first = std::fs::read(directory.join("c.pem")).unwrap();
    login_with_tls(&running, &first).await.unwrap();
    // Another certificate, without a restart.
    let tls = certificate(directory);
    let config = Config {
        tables: running.tables.locations.clone(),
        listen: Listen { postgres: Some("127.0.0.1:0".parse().unwrap()), ..Listen::default() },
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
    let mut tcp = TcpStream::connect(running.at).await?;
    tokio::io::AsyncWriteExt::write_all(&mut tcp, &[0, 0, 0, 8, 4, 210, 22, 47]).await?;
    assert_eq!(tokio::io::AsyncReadExt::read_u8(&mut tcp).await?, b'S');
    let stream = trusting(pem, &[])?.connect(ServerName::try_from("localhost")?, tcp).await?;
    let (client, connection) = running.config("ann", PASSWORD).connect_raw(stream, NoTls).await?;
    tokio::spawn(connection);
    client.simple_query("SELECT count(*) FROM numbers").await?;
    Ok(())
}
