//! Makes the worker and the coordinator of a server from its settings.

use std::sync::Arc;

use coscan_distributed::{
    Connections, Coordinator, CoordinatorOptions, Security, WorkerHealth, WorkerOptions,
    WorkerServer, worker,
};
use coscan_storage::stores::Prefixes;
use coscan_transport::CredentialsError;
use url::Url;

use crate::config::Workers;
use crate::members;
use crate::sql::SqlService;

/// The reason why a server cannot work with others.
#[derive(Debug, thiserror::Error)]
pub enum WorkersError {
    /// An address in `workers.members` is wrong.
    #[error(
        "workers.members has {text:?}, which is not an address: {reason}; write host:port, without http://"
    )]
    Member {
        /// The address.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A prefix in `workers.stores` is not a URL.
    #[error("workers.stores has {text:?}, which is neither a URL nor a directory: {reason}")]
    Store {
        /// The prefix.
        text: String,
        /// The reason.
        reason: String,
    },
    /// The files of `workers.key`, `workers.ca` or `workers.certificate` cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

/// The settings of `[workers]`, with addresses parsed and files of credentials read.
pub(crate) struct Membership {
    members: Vec<Url>,
    stores: Prefixes,
    security: Security,
    connections: Arc<Connections>,
    options: CoordinatorOptions,
}

impl Membership {
    /// Reads the files and addresses that the settings name.
    pub(crate) fn load(workers: &Workers) -> Result<Self, WorkersError> {
        let member = |text: &String| {
            let wrong = |reason: String| WorkersError::Member { text: text.clone(), reason };
            match Url::parse(&format!("http://{text}")) {
                Ok(url) if url.path() == "/" && url.port_or_known_default().is_some() => Ok(url),
                Ok(_) => Err(wrong("it has more than a host and a port".to_owned())),
                Err(error) => Err(wrong(error.to_string())),
            }
        };
        let store = |text: &String| {
            members::prefix(text)
                .map_err(|reason| WorkersError::Store { text: text.clone(), reason })
        };
        let files = [&workers.key, &workers.ca, &workers.certificate].map(Option::as_deref);
        let [key, authority, certificate] = files;
        let security = match workers.insecure {
            true => Security::None,
            false => {
                let credentials = members::credentials(key, authority, certificate);
                Security::MutualTls(credentials.load()?)
            }
        };
        let mut options = CoordinatorOptions::default();
        if let Some(bytes) = workers.divided_bytes_min {
            options.divided_bytes_min = bytes;
        }
        if let Some(queries) = workers.queries_max {
            options.queries_max = queries.get();
        }
        Ok(Self {
            members: workers.members.iter().map(member).collect::<Result<_, _>>()?,
            stores: workers.stores.iter().map(store).collect::<Result<Vec<_>, _>>()?.into(),
            connections: Arc::new(Connections::new(security.clone())),
            security,
            options,
        })
    }

    /// The server that executes tasks of others, with the manager of a service.
    pub(crate) fn worker(&self, service: &SqlService) -> WorkerServer {
        let worker = worker(WorkerOptions {
            coscan: service.coscan().clone(),
            channels: Arc::clone(&self.connections) as _,
            runtime: service.runtime(),
            make_memory_pool: service.make_memory_pool(),
            register_functions: service.register_functions(),
            stores: self.stores.clone(),
        });
        WorkerServer::new(worker, self.security.clone(), self.options.queries_max)
    }

    /// The coordinator for the members and their health, if there are any members.
    pub(crate) fn coordinator(
        &self,
        service: &SqlService,
    ) -> Option<(Arc<WorkerHealth>, Coordinator)> {
        if self.members.is_empty() {
            return None;
        }
        let workers = WorkerHealth::new(Arc::clone(&self.connections), self.members.clone());
        let workers = Arc::new(workers);
        let channels = Arc::clone(&self.connections) as _;
        let functions = Some(Arc::new(service.known_functions().clone()));
        let options = CoordinatorOptions { functions, ..self.options.clone() };
        let coordinator = Coordinator::new(options, Arc::clone(&workers) as _, channels);
        Some((workers, coordinator))
    }
}
