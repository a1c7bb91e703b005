//! The stores of URLs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use url::Url;

use super::bucket;
use super::direct::DirectFileStore;
use super::error::StoreError;
use super::location::check_length;
use super::options::StoreOptions;
use super::timeouts::Timeouts;
use super::web;

/// Schemes that work without registration, in the order in which errors list them.
const BUILT_IN_SCHEMES: [&str; 8] = ["file", "http", "https", "s3", "gs", "az", "abfs", "abfss"];

/// Built stores that are kept for the next table, in use or not.
const UNUSED_STORES_MAX: usize = 32;

/// The stores of URLs: registered ones, and built-in ones that are made on demand.
///
/// | scheme | store |
/// |---|---|
/// | `file` | [`DirectFileStore`], one for all |
/// | `http`, `https` | object_store's HTTP store, one per host |
/// | `s3` | object_store's S3 store, one per bucket; settings from the `AWS_*` environment variables |
/// | `gs` | object_store's store of Google Cloud Storage, one per bucket; settings from `GOOGLE_*` |
/// | `az`, `abfs`, `abfss` | object_store's store of Azure, one per container; settings from `AZURE_*` |
///
/// Without credentials in the settings, those of the machine are used: its service account or role, or the login of
/// `gcloud`.
///
/// The path in a store is always the URL's whole path, also if a longer prefix was registered.
/// Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    open: Arc<RwLock<OpenStores>>,
    options: StoreOptions,
    timeouts: Timeouts,
}

#[derive(Debug, Default)]
struct OpenStores {
    /// The registered stores by prefix, each ending in a slash.
    registered: BTreeMap<String, Arc<dyn ObjectStore>>,
    built: BTreeMap<Identity, Arc<dyn ObjectStore>>,
}

/// The identity of a built store. It includes the options, so that no session reads with the credentials of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    /// The root of the store, such as `s3://bucket/`.
    root: String,
    options: StoreOptions,
    timeouts: Timeouts,
}

impl Stores {
    /// Stores with only the built-in schemes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses `store` for all URLs below `url_prefix`, such as `file:///`, `s3://bucket/` or `memory:///`. The longest
    /// prefix takes precedence, and any prefix takes precedence over the built-in schemes. Replaces a store registered
    /// for the same prefix.
    ///
    /// The prefix chooses the store; it is not removed from the path that the store sees.
    pub fn register(&self, url_prefix: &Url, store: Arc<dyn ObjectStore>) {
        self.write().registered.insert(with_final_slash(url_prefix), store);
    }

    /// The stores with these options. Only users with the same options share them. With options, registered stores are
    /// not used, because they were made without.
    #[must_use]
    pub fn with_options(&self, options: StoreOptions) -> Self {
        Self { options, ..self.clone() }
    }

    /// The stores with these timeouts, for stores across the network.
    #[must_use]
    pub fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self.clone() }
    }

    /// The store of `url`, and the URL of that store's root: `file:///`, `s3://bucket/`. DataFusion registers stores
    /// under their roots. With options, the root has a fragment (`#`) that identifies them without revealing values,
    /// so that equal roots mean equal stores.
    ///
    /// Nothing is read or connected.
    ///
    /// # Errors
    /// If the scheme is unknown, the bucket or host is missing, settings do not work, or options are for other
    /// stores.
    pub fn resolve(&self, url: &Url) -> Result<(Url, Arc<dyn ObjectStore>), StoreError> {
        check_length(url.as_str())?;
        let root = root_of(url)?;
        let identity = Identity {
            root: root.to_string(),
            options: self.options.clone(),
            timeouts: self.timeouts,
        };
        let store = match self.find(url, &identity) {
            Some(store) => store,
            None => {
                let built = self.build(&root)?;
                let mut open = self.write();
                // Credentials that change often each leave a store behind.
                if open.built.len() >= UNUSED_STORES_MAX {
                    open.built.retain(|_, store| Arc::strong_count(store) > 1);
                }
                // Two concurrent callers both get the store that was first.
                Arc::clone(open.built.entry(identity).or_insert(built))
            }
        };
        let mut root = root;
        root.set_fragment(self.options.stamp().as_deref());
        Ok((root, store))
    }

    fn find(&self, url: &Url, identity: &Identity) -> Option<Arc<dyn ObjectStore>> {
        let url = with_final_slash(url);
        let open = self.read();
        let registered = open
            .registered
            .iter()
            .filter(|(prefix, _)| self.options.is_empty() && url.starts_with(prefix.as_str()))
            .max_by_key(|(prefix, _)| prefix.len())
            .map(|(_, store)| store);
        registered.or_else(|| open.built.get(identity)).cloned()
    }

    fn build(&self, root: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
        let (options, timeouts) = (&self.options, self.timeouts);
        Ok(match root.scheme() {
            "s3" => Arc::new(bucket::build::<AmazonS3Builder>(root, options, timeouts)?),
            "gs" => Arc::new(bucket::build::<GoogleCloudStorageBuilder>(root, options, timeouts)?),
            "az" | "abfs" | "abfss" => {
                Arc::new(bucket::build::<MicrosoftAzureBuilder>(root, options, timeouts)?)
            }
            _ if !options.is_empty() => {
                let options = options.names();
                return Err(StoreError::UnusedOptions { options, url: root.to_string() });
            }
            "http" | "https" => Arc::new(web::build(root, timeouts)?),
            "file" if root.host_str().is_some() => {
                return Err(StoreError::WrongLocation {
                    location: root.to_string(),
                    reason: "file URLs of this machine have three slashes: file:///path".to_owned(),
                });
            }
            "file" => Arc::new(DirectFileStore::new()),
            scheme => {
                return Err(StoreError::UnknownScheme {
                    url: root.to_string(),
                    scheme: scheme.to_owned(),
                    known: self.known_schemes(),
                });
            }
        })
    }

    fn known_schemes(&self) -> String {
        let open = self.read();
        let registered = open.registered.keys().map(String::as_str);
        let built_in = BUILT_IN_SCHEMES.iter().map(|scheme| format!("{scheme}://"));
        built_in.chain(registered.map(str::to_owned)).collect::<Vec<_>>().join(", ")
    }

    fn read(&self) -> RwLockReadGuard<'_, OpenStores> {
        // Entries are put in whole: a panic of another holder leaves none half done.
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, OpenStores> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URL without path, query and fragment.
///
/// # Errors
/// If it has a user or a password. In `abfs://container@account.…` the first part is not a user.
fn root_of(url: &Url) -> Result<Url, StoreError> {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    let is_container = matches!(url.scheme(), "az" | "abfs" | "abfss");
    if url.password().is_some() || !(url.username().is_empty() || is_container) {
        // These fail only without a host, and then there is no user.
        let _ = root.set_password(None);
        let _ = root.set_username("");
        return Err(StoreError::UserInUrl { url: root.to_string() });
    }
    Ok(root)
}

/// The URL with a final slash, so that `/fast` is a prefix of `/fast/file` but not of `/faster`.
fn with_final_slash(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let mut text = url.to_string();
    if !text.ends_with('/') {
        text.push('/');
    }
    text
}
