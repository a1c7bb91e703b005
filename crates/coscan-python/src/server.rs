//! A server in this process.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use coscan_cli::Session;
use coscan_server::config::Config;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{from_any, from_engine};
use crate::process::{OfProcess, lock, wait};
use crate::tables;

/// A server that runs in this process until it is stopped or dropped.
#[pyclass(frozen, module = "coscan._native")]
pub(crate) struct Server {
    server: OfProcess<Mutex<Option<coscan_server::Server>>>,
    addresses: [Option<SocketAddr>; 3],
}

/// Where a server listens, and who may use it.
pub(crate) struct Settings {
    /// A configuration file with everything else.
    pub(crate) config: Option<PathBuf>,
    pub(crate) users_file: Option<PathBuf>,
    pub(crate) postgres: Option<String>,
    pub(crate) flight: Option<String>,
    pub(crate) http: Option<String>,
}

impl Settings {
    /// Without users, everyone on this machine may read all tables.
    fn configuration(self) -> PyResult<Config> {
        let mut config = match &self.config {
            Some(path) => Config::read(path).map_err(|error| from_any(error.into()))?,
            None => Config::default(),
        };
        for (name, given, address) in [
            ("postgres", self.postgres, &mut config.listen.postgres),
            ("flight", self.flight, &mut config.listen.flight),
            ("http", self.http, &mut config.listen.http),
        ] {
            let Some(given) = given else { continue };
            let parsed = given.replace("localhost:", "127.0.0.1:").parse().map_err(|_| {
                PyValueError::new_err(format!(
                    "{name} is an address such as 127.0.0.1:0, not {given}"
                ))
            })?;
            *address = Some(parsed);
        }
        if self.users_file.is_some() {
            config.users_file = self.users_file;
        }
        config.insecure |= config.users_file.is_none();
        config.http.local_frames = true;
        Ok(config)
    }
}

impl Server {
    /// Starts a server on the files of a session, which shares with the queries of the session.
    pub(crate) fn start(
        py: Python<'_>,
        session: Arc<Session>,
        settings: Settings,
    ) -> PyResult<Self> {
        let config = settings.configuration()?;
        let started = async move {
            let server = coscan_server::Server::start_on(session.manager(), &config).await;
            let server = server.map_err(|error| from_any(error.into()))?;
            let files = tables::files(&session).await.map_err(from_engine)?;
            for (name, table) in &files {
                server.sql_service().add_table(name, table);
            }
            PyResult::Ok(server)
        };
        let server = wait(py, started)??;
        let addresses = [server.postgres, server.flight, server.http];
        Ok(Self { server: OfProcess::new(Mutex::new(Some(server))), addresses })
    }
}

#[pymethods]
impl Server {
    /// The addresses for clients of the PostgreSQL protocol, of Flight SQL, and for browsers.
    #[getter]
    fn addresses(&self) -> [Option<String>; 3] {
        self.addresses.map(|address| address.map(|address| address.to_string()))
    }

    /// Whether it has not been stopped.
    #[getter]
    fn is_running(&self) -> PyResult<bool> {
        Ok(lock(self.server.get()?).is_some())
    }

    /// Stops the server. Queries that still run after these seconds are cancelled. Returns whether some were.
    fn stop(&self, py: Python<'_>, grace: f64) -> PyResult<bool> {
        let grace = Duration::try_from_secs_f64(grace)
            .map_err(|error| PyValueError::new_err(format!("grace: {error}")))?;
        let Some(server) = lock(self.server.get()?).take() else { return Ok(false) };
        let stopped = wait(py, async move { server.stop(grace, pending()).await })?;
        Ok(stopped == coscan_server::Stopped::Cancelled)
    }
}
