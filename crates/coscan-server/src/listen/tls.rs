//! Certificates, which are checked before the server starts, and can be replaced while it runs.

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::channel_binding::server_end_point;
use crate::config::Tls;

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {path} as a PEM file: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The files do not fit together.
    #[error(
        "the certificate {path} cannot be used: {reason}; tls.key must be its private key",
        path = path.display()
    )]
    Unusable {
        /// The certificate.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// A certificate that was read.
#[derive(Debug)]
pub struct LoadedCertificate {
    config: ServerConfig,
    /// The channel binding data (tls-server-end-point, RFC 5929), or `None` for certificates without it.
    binding: Option<Arc<[u8]>>,
}

/// Reads a certificate and its key.
///
/// # Errors
/// If a file cannot be read, or the key is not that of the certificate.
pub fn load_certificate(tls: &Tls) -> Result<LoadedCertificate, TlsError> {
    let file = |path: &PathBuf, reason: &dyn std::fmt::Display| TlsError::File {
        path: path.clone(),
        reason: reason.to_string(),
    };
    let unusable = |reason: rustls::Error| TlsError::Unusable {
        path: tls.certificate.clone(),
        reason: reason.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| file(&tls.certificate, &error))?;
    if chain.is_empty() {
        return Err(file(&tls.certificate, &"it has no certificate"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| file(&tls.key, &error))?;
    let binding = chain.first().and_then(|certificate| server_end_point(certificate));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    Ok(LoadedCertificate { config, binding: binding.map(Arc::from) })
}

/// The current certificate of the server.
#[derive(Debug)]
pub struct Certificate {
    files: Tls,
    current: ArcSwap<LoadedCertificate>,
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// As [`load_certificate`].
    pub fn load(files: Tls) -> Result<Self, TlsError> {
        let current = ArcSwap::from_pointee(load_certificate(&files)?);
        Ok(Self { files, current })
    }

    /// Reads the files again without using them before [`replace`](Self::replace).
    ///
    /// # Errors
    /// As [`load_certificate`].
    pub fn read_again(&self) -> Result<LoadedCertificate, TlsError> {
        load_certificate(&self.files)
    }

    /// Replaces the certificate for later connections.
    pub fn replace(&self, loaded: LoadedCertificate) {
        self.current.store(Arc::new(loaded));
    }

    /// The TLS configuration for connections with these application protocols (ALPN), and the data to which a login
    /// over them can be bound.
    #[must_use]
    pub fn for_protocols(&self, protocols: &[&[u8]]) -> (Arc<ServerConfig>, Option<Arc<[u8]>>) {
        let current = self.current.load();
        let mut config = current.config.clone();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        (Arc::new(config), current.binding.clone())
    }
}
