//! The reasons why a server does not start.

use std::io;
use std::net::SocketAddr;

use crate::config::ConfigError;
use crate::listen::TlsError;
use crate::ring::RingError;
use crate::sql::SqlServiceError;
use crate::users::UsersError;

/// The reason why a server does not start, or why a reload has no effect.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The users are invalid.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The tables or memory settings are invalid.
    #[error(transparent)]
    SqlService(#[from] SqlServiceError),
    /// The server cannot listen at an address.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It cannot share with other servers.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// It cannot work with other servers.
    #[cfg(feature = "distributed")]
    #[error(transparent)]
    Workers(#[from] crate::workers::WorkersError),
    /// The dashboard cannot be served.
    #[error("cannot serve the dashboard: {0}")]
    Http(io::Error),
}
