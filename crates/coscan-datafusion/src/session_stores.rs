//! The stores of a session, by URL.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use coscan_storage::stores::Stores;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::session_state::SessionState;
use object_store::ObjectStore;
use url::Url;

use crate::error::from_store;

/// The stores registered with the session, and coscan's for all other URLs: files that a query or `register_parquet`
/// names are found without registering a store, and read through the same client as tables of coscan.
#[derive(Debug)]
pub(crate) struct SessionStores {
    registered: Arc<dyn ObjectStoreRegistry>,
    stores: Stores,
}

/// All wrapped stores. A session is often made on the runtime environment of another one, and its stores can only be
/// recognized as wrapped ones by this list. Without it, the stores of the other session would take precedence.
static ALL: Mutex<Vec<Weak<SessionStores>>> = Mutex::new(Vec::new());

impl SessionStores {
    /// Wraps the stores of a session. If they are wrapped already, the wrapper is replaced.
    pub(crate) fn around(session: &SessionState, stores: &Stores) -> Arc<Self> {
        let existing = &session.runtime_env().object_store_registry;
        let address = Arc::as_ptr(existing).cast::<()>();
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        let ours = all.iter().find(|known| known.as_ptr().cast::<()>() == address);
        let ours = ours.and_then(Weak::upgrade);
        let registered =
            ours.map_or_else(|| Arc::clone(existing), |ours| Arc::clone(&ours.registered));
        let around = Arc::new(Self { registered, stores: stores.clone() });
        all.push(Arc::downgrade(&around));
        around
    }
}

impl ObjectStoreRegistry for SessionStores {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.registered.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.registered.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        let registered = self.registered.get_store(url);
        registered.or_else(|_| Ok(self.stores.resolve(url).map_err(from_store)?.1))
    }
}
