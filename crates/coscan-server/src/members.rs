//! What servers that work together are told of each other.

use std::path::Path;

use coscan_transport::Credentials;
use url::Url;

/// The credentials in these files: a key that all servers have, or the key of a certificate.
pub(crate) fn credentials(
    key: Option<&Path>,
    authority: Option<&Path>,
    certificate: Option<&Path>,
) -> Credentials {
    let key = key.unwrap_or(Path::new("")).to_owned();
    match (authority, certificate) {
        (Some(authority), Some(certificate)) => Credentials::Certificates {
            authority: authority.to_owned(),
            certificate: certificate.to_owned(),
            key,
        },
        _ => Credentials::Key(key),
    }
}

/// Parses a prefix of a store, a URL or a directory of this machine, as a URL.
///
/// # Errors
/// With the reason, if it is neither.
pub(crate) fn prefix(text: &str) -> Result<Url, String> {
    if text.contains("://") {
        return Url::parse(text).map_err(|error| error.to_string());
    }
    let path = std::path::absolute(text).map_err(|error| error.to_string())?;
    Url::from_directory_path(path).map_err(|()| "it has no absolute form".to_owned())
}
