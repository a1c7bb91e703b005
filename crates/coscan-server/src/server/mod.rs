//! Starts, reloads and stops a server.

mod error;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::BufferManager;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::check::check;
use crate::config::{Config, ConfigError, Http};
use crate::http::HttpServer;
use crate::listen::{Certificate, ConnectionLimit};
use crate::postgres::PostgresServer;
use crate::ring;
use crate::sql::{SqlService, SqlServiceError};
use crate::users::{Users, UsersError};
pub use error::ServerError;

/// The maximum time for connections to end once their queries are cancelled.
const END_MAX: Duration = Duration::from_secs(5);

/// A running server.
#[derive(Debug)]
pub struct Server {
    service: Arc<SqlService>,
    certificate: Option<Arc<Certificate>>,
    connection_limit: ConnectionLimit,
    stopping: CancellationToken,
    stopped: CancellationToken,
    tasks: JoinSet<()>,
    /// The tasks that other servers have sent, if it is a worker.
    #[cfg(feature = "distributed")]
    worker_tasks: Option<coscan_distributed::RunningTasks>,
    dashboard: Option<Arc<HttpServer>>,
    /// The address of the PostgreSQL protocol.
    pub postgres: Option<SocketAddr>,
    /// The address of Arrow Flight SQL.
    pub flight: Option<SocketAddr>,
    /// The address of the dashboard.
    pub http: Option<SocketAddr>,
    /// The address for other servers that share what they read.
    pub ring: Option<SocketAddr>,
    /// The address for servers that send tasks to this one.
    pub worker: Option<SocketAddr>,
}

/// The way in which a server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// All queries ended on their own.
    Gracefully,
    /// Some queries were cancelled.
    Cancelled,
}

impl Server {
    /// Checks whether a server could start, except for listening. Checks all settings and opens all tables.
    ///
    /// # Errors
    /// All problems.
    pub async fn check(config: &Config) -> Result<(), ServerError> {
        let mut wrong = match check(config) {
            Ok(()) => Vec::new(),
            Err(ConfigError::Wrong(wrong)) => wrong,
            Err(error) => vec![error.to_string()],
        };
        let opened = async {
            let manager =
                BufferManager::new(config.memory.options()).map_err(SqlServiceError::from)?;
            let service = SqlService::new(&manager, Arc::new(Users::anyone()), &config.limits)?;
            service.open_tables(&config.tables).await?;
            Ok::<_, ServerError>(())
        };
        if let Err(error) = opened.await {
            wrong.push(error.to_string());
        }
        if wrong.is_empty() { Ok(()) } else { Err(ConfigError::Wrong(wrong).into()) }
    }

    /// Starts a server: opens its tables and listens.
    ///
    /// # Errors
    /// If the configuration is wrong, a table cannot be opened, or an address is taken.
    pub async fn start(config: &Config) -> Result<Self, ServerError> {
        check(config)?;
        let manager = BufferManager::new(config.memory.options()).map_err(SqlServiceError::from)?;
        Self::start_on(&manager, config).await
    }

    /// Starts a server on a manager, which has its own memory settings and stores. Those of `config` are ignored.
    /// Queries of the same program on this manager share with those of clients.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_on(manager: &BufferManager, config: &Config) -> Result<Self, ServerError> {
        check(config)?;
        let users = Arc::new(users(config)?);
        let service = Arc::new(SqlService::new(manager, users, &config.limits)?);
        let mut ring_address = None;
        let ring = config.ring.as_ref().and_then(|ring| Some((ring, ring.listens_at()?)));
        if let Some((ring, address)) = ring {
            let (listener, address) = listen(address).await?;
            service.share_through(ring::start(ring, listener, manager)?);
            ring_address = Some(address);
        }
        service.open_tables(&config.tables).await?;
        if let Some(directory) = &config.database {
            service.open_database(directory).await?;
        }
        let certificate = config.tls.clone().map(Certificate::load).transpose()?.map(Arc::new);
        let mut server = Self {
            service,
            certificate,
            connection_limit: ConnectionLimit::new(config.limits.connections_max),
            stopping: CancellationToken::new(),
            stopped: CancellationToken::new(),
            tasks: JoinSet::new(),
            #[cfg(feature = "distributed")]
            worker_tasks: None,
            dashboard: None,
            postgres: None,
            flight: None,
            http: None,
            ring: ring_address,
            worker: None,
        };
        let gives_back = Arc::clone(&server.service);
        server.tasks.spawn(async move { gives_back.give_back_memory().await });
        if let Some(address) = config.listen.postgres {
            let (listener, address) = listen(address).await?;
            server.postgres = Some(address);
            let postgres = PostgresServer::new(
                Arc::clone(&server.service),
                server.certificate.clone(),
                server.connection_limit.clone(),
                server.stopping.clone(),
                server.stopped.clone(),
            );
            server.tasks.spawn(postgres.serve(listener));
        }
        #[cfg(feature = "flight-sql")]
        if let Some(address) = config.listen.flight {
            let (listener, address) = listen(address).await?;
            server.flight = Some(address);
            let flight = crate::flight::FlightServer::new(
                Arc::clone(&server.service),
                server.certificate.clone(),
                server.connection_limit.clone(),
                server.stopping.clone(),
                server.stopped.clone(),
            );
            server.tasks.spawn(flight.serve(listener));
        }
        #[cfg(feature = "distributed")]
        if let Some(workers) = &config.workers {
            server.work_with(workers).await?;
        }
        if let Some(address) = config.listen.http {
            server.listen_http(address, config.http).await?;
        }
        Ok(server)
    }

    /// Gets tasks from other servers, and divides queries among workers.
    #[cfg(feature = "distributed")]
    async fn work_with(&mut self, workers: &crate::config::Workers) -> Result<(), ServerError> {
        let membership = crate::workers::Membership::load(workers)?;
        if let Some(address) = workers.listen {
            let (listener, address) = listen(address).await?;
            self.worker = Some(address);
            let worker = membership.worker(&self.service);
            let (stopping, stopped) = (self.stopping.clone(), self.stopped.clone());
            self.worker_tasks = Some(worker.tasks());
            self.service.set_running_tasks(worker.tasks());
            // Operators must not keep the threads of connections busy.
            let threads = self.service.task_threads().map_err(SqlServiceError::Threads)?;
            self.tasks.spawn(worker.serve(listener, threads, stopping, stopped));
        }
        if let Some((workers, coordinator)) = membership.coordinator(&self.service) {
            workers.ask_all().await;
            self.service.divide_among(Arc::clone(&workers), coordinator);
            self.tasks.spawn(async move { workers.watch().await });
        }
        Ok(())
    }

    async fn listen_http(
        &mut self,
        address: SocketAddr,
        settings: Http,
    ) -> Result<(), ServerError> {
        let (listener, address) = listen(address).await?;
        let (service, certificate) = (Arc::clone(&self.service), self.certificate.clone());
        let dashboard =
            HttpServer::new(service, settings, certificate, self.connection_limit.clone());
        let dashboard = dashboard.map_err(ServerError::Http)?;
        self.tasks.spawn(Arc::clone(&dashboard).serve(listener));
        self.http = Some(address);
        self.dashboard = Some(dashboard);
        Ok(())
    }

    /// Runs the statements of all protocols.
    #[must_use]
    pub fn sql_service(&self) -> &Arc<SqlService> {
        &self.service
    }

    /// Replaces tables, users and the certificate by those of a configuration, without a restart. Users and
    /// certificates are read from the files that were configured at the start. Running queries and sessions keep what
    /// they have.
    ///
    /// # Errors
    /// If one of them is invalid. All of them then stay unchanged.
    pub async fn reload(&self, config: &Config) -> Result<(), ServerError> {
        check(config)?;
        let certificate = self.certificate.as_ref();
        let loaded = certificate.map(|certificate| certificate.read_again()).transpose()?;
        let users = self.service.users().read_again()?;
        let tables = self.service.opened_tables(&config.tables).await?;
        // Nothing fails from here on.
        if let (Some(certificate), Some(loaded)) = (certificate, loaded) {
            certificate.replace(loaded);
        }
        if let Some(users) = users {
            self.service.users().replace(users);
        }
        self.service.replace_tables(tables);
        Ok(())
    }

    /// Stops the server: accepts no connections and no queries, and waits until running queries have ended. After
    /// `grace`, or once `hurry` completes, they are cancelled.
    ///
    /// The dashboard stops last. Until then, `/readyz` answers that no queries are accepted.
    pub async fn stop(mut self, grace: Duration, hurry: impl Future<Output = ()>) -> Stopped {
        if let Some(dashboard) = &self.dashboard {
            dashboard.set_unready();
        }
        self.stopping.cancel();
        self.service.queries().close();
        let ended = async {
            self.service.queries().drained().await;
            #[cfg(feature = "distributed")]
            if let Some(tasks) = &self.worker_tasks {
                tasks.drained().await;
            }
            self.stop_dashboard();
            self.connection_limit.emptied().await;
        };
        let stopped = tokio::select! {
            biased;
            () = ended => Stopped::Gracefully,
            () = tokio::time::sleep(grace) => Stopped::Cancelled,
            () = hurry => Stopped::Cancelled,
        };
        if stopped == Stopped::Cancelled {
            self.service.queries().cancel_all();
            self.stop_dashboard();
            // Clients get the error if they read it.
            tokio::time::timeout(END_MAX, self.connection_limit.emptied()).await.ok();
            self.stopped.cancel();
            if let Some(dashboard) = &self.dashboard {
                dashboard.end();
            }
            tokio::time::timeout(END_MAX, self.connection_limit.emptied()).await.ok();
        }
        self.tasks.shutdown().await;
        stopped
    }

    fn stop_dashboard(&self) {
        if let Some(dashboard) = &self.dashboard {
            dashboard.stop();
        }
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |source| ServerError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn users(config: &Config) -> Result<Users, UsersError> {
    match &config.users_file {
        Some(path) => Users::load(path),
        None => Ok(Users::anyone()),
    }
}
