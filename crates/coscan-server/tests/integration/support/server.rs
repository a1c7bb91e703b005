//! A server that clients connect to.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use coscan_server::Server;
use coscan_server::config::{Config, Listen, Memory, Ring, Tls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres::{Client, NoTls};
use tokio_rustls::TlsConnector;

use super::{PASSWORD, Tables};

pub(crate) struct Running {
    pub(crate) tables: Tables,
    pub(crate) server: Server,
    pub(crate) at: SocketAddr,
    pub(crate) http: SocketAddr,
}

pub(crate) async fn start_with(tls: bool) -> Running {
    start_as(|config, directory| config.tls = tls.then(|| certificate(directory))).await
}

/// Lets clients in without passwords.
pub(crate) fn without_passwords(config: &mut Config) {
    (config.users_file, config.insecure) = (None, true);
}

/// Starts a server with changed settings.
pub(crate) async fn start_as(change: impl FnOnce(&mut Config, &Path)) -> Running {
    let tables = Tables::new();
    let directory = tables.directory.path();
    let users_file = directory.join("users.toml");
    std::fs::write(&users_file, Tables::users()).unwrap();
    let mut config = Config {
        tables: tables.locations.clone(),
        listen: Listen {
            postgres: Some("127.0.0.1:0".parse().unwrap()),
            http: Some("127.0.0.1:0".parse().unwrap()),
            ..Listen::default()
        },
        users_file: Some(users_file),
        memory: Memory { bytes: Some(256 << 20), pool_bytes: None },
        ..Config::default()
    };
    change(&mut config, directory);
    let server = Server::start(&config).await.unwrap();
    let (at, http) = (server.postgres.unwrap(), server.http.unwrap());
    Running { tables, server, at, http }
}

pub(crate) async fn start() -> Running {
    start_with(false).await
}

/// A server, and a client of Ann.
pub(crate) async fn start_with_ann() -> (Running, Client) {
    let running = start().await;
    let client = running.login("ann").await;
    (running, client)
}

/// Settings that share the files below a directory. Its `ring.key` is created if it is missing.
pub(crate) fn ring(directory: &Path, listen: SocketAddr, join: SocketAddr) -> Ring {
    let key = directory.join("ring.key");
    if !key.exists() {
        std::fs::write(&key, coscan_transport::new_key().unwrap()).unwrap();
    }
    Ring {
        listen: Some(listen),
        join: vec![join.to_string()],
        zone: "here".to_owned(),
        stores: vec![directory.display().to_string()],
        key: Some(key),
        ..Ring::default()
    }
}

pub(crate) fn certificate(directory: &Path) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: directory.join("c.pem"), key: directory.join("k.pem") };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    tls
}

/// The configuration of a TLS client that trusts this certificate only, and supports these protocols (ALPN).
pub(crate) fn trusting(
    pem: &[u8],
    protocols: &[&[u8]],
) -> Result<TlsConnector, Box<dyn std::error::Error>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(TlsConnector::from(Arc::new(client)))
}

impl Running {
    pub(crate) fn config(&self, user: &str, password: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.at.port()).user(user).password(password);
        config.dbname("coscan");
        config
    }

    pub(crate) async fn login(&self, user: &str) -> Client {
        let (client, connection) = self.config(user, PASSWORD).connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}
