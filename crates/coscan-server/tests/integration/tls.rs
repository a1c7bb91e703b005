//! The PostgreSQL protocol within TLS.

use crate::support::PASSWORD;
use crate::support::server::{Running, certificate, start_with, trusting};
use coscan_server::config::{Config, Listen};
use rustls::pki_types::ServerName;
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
    // Another certificate is used without a restart.
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
    // A wrong certificate is refused, and changes nothing.
    std::fs::write(&tls.key, "no key").unwrap();
    assert!(running.server.reload(&config).await.is_err());
    login_with_tls(&running, &second).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_takes_all_or_nothing() {
    let running = start_with(true).await;
    let directory = running.tables.directory.path();
    let first = std::fs::read(directory.join("c.pem")).unwrap();
    let mut config = Config {
        tables: running.tables.locations.clone(),
        listen: Listen { postgres: Some("127.0.0.1:0".parse().unwrap()), ..Listen::default() },
        users_file: Some(directory.join("users.toml")),
        tls: Some(certificate(directory)),
        ..Config::default()
    };
    let second = std::fs::read(directory.join("c.pem")).unwrap();
    let users = std::fs::read_to_string(directory.join("users.toml")).unwrap();
    std::fs::write(directory.join("users.toml"), users.replace("ann", "eve")).unwrap();
    let missing = format!("{}/no such file.parquet", directory.display());
    config.tables.insert("missing".to_owned(), missing.into());
    assert!(running.server.reload(&config).await.is_err());
    login_with_tls(&running, &first).await.unwrap(); // As ann, with the first certificate.
    config.tables.remove("missing");
    running.server.reload(&config).await.unwrap();
    let error = login_with_tls(&running, &second).await.unwrap_err(); // With the second certificate; ann is gone.
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(|error| error.code());
    assert_eq!(code, Some(&SqlState::INVALID_PASSWORD), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_may_begin_at_once_if_it_names_the_protocol() {
    let running = start_with(true).await;
    let pem = std::fs::read(running.tables.directory.path().join("c.pem")).unwrap();
    let connect = async |protocols: &[&[u8]]| {
        let tcp = TcpStream::connect(running.at).await?;
        let name = ServerName::try_from("localhost")?;
        let stream = trusting(&pem, protocols)?.connect(name, tcp).await?;
        let config = running.config("ann", PASSWORD);
        let (client, connection) = config.connect_raw(stream, NoTls).await?;
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    connect(&[b"postgresql"]).await.unwrap();
    assert!(connect(&[]).await.is_err(), "without ALPN");
    assert!(connect(&[b"h2"]).await.is_err());
    // Without a certificate there is no TLS, and nothing waits for it.
    let plain = start_with(false).await;
    let tcp = TcpStream::connect(plain.at).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    assert!(trusting(&pem, &[b"postgresql"]).unwrap().connect(name, tcp).await.is_err());
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
