//! Shares reads with other servers.

use std::sync::Arc;

use coscan_runtime::ring::{Choosing, Config};
use coscan_runtime::{BufferManager, ClusterOptions};
use coscan_storage::stores::Prefixes;
use coscan_transport::{Credentials, Transport, TransportConfig, TransportError};
use tokio::net::TcpListener;
use url::Url;

use crate::config::{Ring, RingMode};
use crate::members;

/// The reason why a server does not share.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// A prefix in `ring.stores` is not a URL.
    #[error("ring.stores has {text:?}, which is neither a URL nor a directory: {reason}")]
    Store {
        /// The prefix.
        text: String,
        /// The reason.
        reason: String,
    },
    /// Credentials cannot be used, or the manager shares already.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Starts to share what a manager reads. The other servers connect to `listener`.
pub(crate) fn start(
    ring: &Ring,
    listener: TcpListener,
    manager: &BufferManager,
) -> Result<Arc<Transport>, RingError> {
    // Port 0 stands for any port. The listener has the actual one.
    let listens_at = || listener.local_addr().map(|address| address.to_string()).ok();
    let config = TransportConfig {
        address: ring.address.clone().or_else(listens_at).unwrap_or_default(),
        join: ring.join.clone(),
        zone: ring.zone.clone(),
        credentials: credentials(ring),
    };
    let stores = ring.stores.iter().map(|text| prefix(text)).collect::<Result<Vec<_>, _>>()?;
    let chooses = (ring.mode == RingMode::Auto).then(Choosing::default);
    let circulates = ring.mode == RingMode::Circulate;
    let ring = Config { chooses, ..Config::default() };
    let options = ClusterOptions { stores: Prefixes::from(stores), ring, circulates };
    Ok(Arc::new(Transport::start(listener, config, manager, options)?))
}

/// Checks the files and prefixes that the settings name.
pub(crate) fn check(ring: &Ring) -> Result<(), RingError> {
    ring.stores.iter().try_for_each(|text| prefix(text).map(drop))?;
    if ring.key.is_some() {
        credentials(ring).check().map_err(TransportError::from)?;
    }
    Ok(())
}

fn credentials(ring: &Ring) -> Credentials {
    members::credentials(ring.key.as_deref(), ring.ca.as_deref(), ring.certificate.as_deref())
}

/// Parses a prefix as a URL.
fn prefix(text: &str) -> Result<Url, RingError> {
    members::prefix(text).map_err(|reason| RingError::Store { text: text.to_owned(), reason })
}
