//! Servers in the settings, at whose addresses others are found.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::handshake::{DialError, Purpose, dial};
use crate::link::LinkStatus;
use crate::members::Members;
use crate::node_id::node_id;

/// The longest pause before the next attempt, up to which pauses double.
const PAUSE_MAX: Duration = Duration::from_secs(2);
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The interval at which a server that was found is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The addresses of the settings, with the servers that were found there.
#[derive(Debug, Default)]
pub(crate) struct Seeds {
    found: Mutex<BTreeMap<String, Option<String>>>,
}

impl Seeds {
    pub(crate) fn new(addresses: Vec<String>) -> Self {
        let sought = addresses.into_iter().map(|address| (address, None)).collect();
        Self { found: Mutex::new(sought) }
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.found().keys().cloned().collect()
    }

    /// The addresses where no server was found yet.
    pub(crate) fn sought(&self) -> Vec<String> {
        let found = self.found();
        let sought = found.iter().filter(|(_, found)| found.is_none());
        sought.map(|(address, _)| address.clone()).collect()
    }

    /// Makes the server at an address known, again and again, since a name may stand for another server tomorrow.
    pub(crate) async fn find(&self, seed: &str, members: &Arc<Members>) {
        let (mut pause, mut has_warned) = (PAUSE_MIN, false);
        loop {
            let found = self.found().get(seed).cloned().flatten();
            let is_linked = found.is_some_and(|address| {
                address == members.own
                    || members.links.status(node_id(&address)) != LinkStatus::Down
            });
            if is_linked {
                tokio::time::sleep(CHECK_INTERVAL).await;
                continue;
            }
            let dialed = dial(&members.own, seed, Purpose::Discovery, &members.tls).await;
            let address = match dialed {
                Ok((address, _)) => Ok(address),
                // It may stand for all servers, and this one is the first.
                Err(DialError::SameAddress) => Ok(members.own.clone()),
                Err(error) => Err(error),
            };
            match address {
                Ok(address) => {
                    members.meet(&address);
                    self.found().insert(seed.to_owned(), Some(address));
                    (pause, has_warned) = (PAUSE_MIN, false);
                }
                Err(error) => {
                    if pause >= PAUSE_MAX && !has_warned {
                        log::warn!(
                            "cannot reach {seed} of ring.join: {error}. Is a server of the same key there?"
                        );
                        has_warned = true;
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn found(&self) -> MutexGuard<'_, BTreeMap<String, Option<String>>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
