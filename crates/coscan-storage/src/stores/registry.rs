//! Which store a URL belongs to.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use object_store::{ClientOptions, ObjectStore, RetryConfig};
use url::Url;

use super::direct::DirectFileStore;
use super::error::StoreError;

/// Schemes that work without registration, in the order in which errors list them.
const BUILT_IN_SCHEMES: [&str; 4] = ["file", "http", "https", "s3"];

/// A wrong host name should be reported while the user still looks at the screen. object_store's
/// own limit is three minutes.
const RETRIES_MAX: usize = 4;
const RETRY_TIME_MAX: Duration = Duration::from_secs(20);

/// Finds the store of a URL: a registered one, or one that it makes.
///
/// | scheme | store |
/// |---|---|
/// | `file` | [`DirectFileStore`], one for all |
/// | `http`, `https` | object_store's HTTP store, one per host |
/// | `s3` | object_store's S3 store, one per bucket; settings from the `AWS_*` environment variables |
///
/// The path in a store is always the URL's whole path, also if a longer prefix was registered.
/// Clones share everything.
#[derive(Debug, Clone, Default)]
pub struct Stores {
    known: Arc<RwLock<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    /// By prefix, each ending in a slash.
    registered: BTreeMap<String, Arc<dyn ObjectStore>>,
    /// By root, such as `s3://bucket/`.
    built: BTreeMap<String, Arc<dyn ObjectStore>>,
}

impl Stores {
    /// No registered stores; the built-in schemes work.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses `store` for all URLs below `url_prefix`, such as `file:///`, `s3://bucket/` or
    /// `memory:///`. The longest prefix wins, and any wins over the built-in schemes. Replaces a
    /// store registered for the same prefix.
    ///
    /// The prefix chooses the store; it is not taken off the path that the store sees.
    pub fn register(&self, url_prefix: &Url, store: Arc<dyn ObjectStore>) {
        self.write().registered.insert(with_final_slash(url_prefix), store);
    }

    /// The store of `url`, and the URL of that store's root: `file:///`, `s3://bucket/`. The root is
    /// what DataFusion registers a store under.
    ///
    /// Nothing is read or reached here.
    ///
    /// # Errors
    /// An unknown scheme, a missing bucket or host, settings that do not work.
    pub fn resolve(&self, url: &Url) -> Result<(Url, Arc<dyn ObjectStore>), StoreError> {
        let root = root_of(url);
        if let Some(store) = self.find(url, &root) {
            return Ok((root, store));
        }
        let built = self.build(url, &root)?;
        // Two callers may have built at once: both get the one that came first.
        let mut known = self.write();
        let store = known.built.entry(root.to_string()).or_insert(built);
        Ok((root.clone(), Arc::clone(store)))
    }

    fn find(&self, url: &Url, root: &Url) -> Option<Arc<dyn ObjectStore>> {
        let wanted = with_final_slash(url);
        let known = self.read();
        let registered = known
            .registered
            .iter()
            .filter(|(prefix, _)| wanted.starts_with(prefix.as_str()))
            .max_by_key(|(prefix, _)| prefix.len())
            .map(|(_, store)| store);
        registered.or_else(|| known.built.get(root.as_str())).cloned()
    }

    fn build(&self, url: &Url, root: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
        let not_built =
            |cause| StoreError::NotBuilt { url: url.to_string(), cause: Box::new(cause) };
        match url.scheme() {
            "file" if url.host_str().is_some() => Err(StoreError::WrongLocation {
                location: url.to_string(),
                reason: "file URLs of this machine have three slashes: file:///path".to_owned(),
            }),
            "file" => Ok(Arc::new(DirectFileStore::new())),
            "http" | "https" => HttpBuilder::new()
                .with_url(root.as_str())
                .with_client_options(ClientOptions::new().with_allow_http(true))
                .with_retry(retry_config())
                .build()
                .map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
                .map_err(not_built),
            "s3" => {
                let bucket = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| {
                    StoreError::MissingBucket { url: url.to_string(), scheme: "s3".to_owned() }
                })?;
                AmazonS3Builder::from_env()
                    .with_bucket_name(bucket)
                    .with_retry(retry_config())
                    .build()
                    .map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
                    .map_err(not_built)
            }
            scheme => Err(StoreError::UnknownScheme {
                url: url.to_string(),
                scheme: scheme.to_owned(),
                known: self.known_schemes(),
            }),
        }
    }

    fn known_schemes(&self) -> String {
        let known = self.read();
        let registered = known.registered.keys().map(String::as_str);
        let built_in = BUILT_IN_SCHEMES.iter().map(|scheme| format!("{scheme}://"));
        built_in.chain(registered.map(str::to_owned)).collect::<Vec<_>>().join(", ")
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        // Entries are put in whole: a panic of another holder leaves none half done.
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URL without path, query and fragment.
fn root_of(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    root
}

/// So that `/fast` is a prefix of `/fast/file` but not of `/faster`.
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

fn retry_config() -> RetryConfig {
    RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX, ..Default::default() }
}
