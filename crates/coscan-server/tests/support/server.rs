//! A server that clients connect to.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::Path;

use coscan_server::Server;
use coscan_server::config::{Config, Listen, Memory, Tls};
use tokio_postgres::{Client, NoTls};

use super::{PASSWORD, Tables};

pub(crate) struct Running {
    pub(crate) tables: Tables,
    pub(crate) server: Server,
    pub(crate) at: SocketAddr,
}

pub(crate) async fn start_with(tls: bool) -> Running {
    start_changed(tls, |_| {}).await
}

/// A server whose configuration was changed.
pub(crate) async fn start_changed(tls: bool, change: impl FnOnce(&mut Config)) -> Running {
    let tables = Tables::new();
    let directory = tables.directory.path();
    let users_file = directory.join("users.toml");
    std::fs::write(&users_file, Tables::users()).unwrap();
    let mut config = Config {
        tables: tables.locations.clone(),
        listen: Listen { postgres: Some("127.0.0.1:0".parse().unwrap()), ..Listen::default() },
        users_file: Some(users_file),
        tls: tls.then(|| certificate(directory)),
        memory: Memory { bytes: Some(256 << 20), pool_bytes: None },
        ..Config::default()
    };
    change(&mut config);
    let server = Server::start(&config).await.unwrap();
    let at = server.postgres.unwrap();
    Running { tables, server, at }
}

pub(crate) async fn start() -> Running {
    start_with(false).await
}

pub(crate) fn certificate(directory: &Path) -> Tls {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: directory.join("c.pem"), key: directory.join("k.pem") };
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    tls
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
