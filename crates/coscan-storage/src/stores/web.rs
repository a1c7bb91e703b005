//! Files on web servers.

use std::sync::Arc;

use object_store::ClientOptions;
use object_store::http::HttpBuilder;
use url::Url;

use super::credential_errors::Credentials;
use super::error::StoreError;
use super::remote::RemoteStore;
use super::timeouts::Timeouts;

/// The store of one host.
pub(super) fn build(root: &Url, timeouts: Timeouts) -> Result<RemoteStore, StoreError> {
    let store = HttpBuilder::new()
        .with_url(root.as_str())
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_retry(timeouts.retry_config())
        .with_http_connector(timeouts.connector())
        .build()
        .map_err(|cause| StoreError::NotBuilt {
            url: root.to_string(),
            cause: Box::new(cause),
            help: "web servers need none but a proxy, if there is one, in HTTPS_PROXY",
        })?;
    Ok(RemoteStore::new(root.as_str(), Arc::new(store), Credentials::default()))
}
