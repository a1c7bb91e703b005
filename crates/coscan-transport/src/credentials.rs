//! Membership of the servers that share: TLS on both sides, against one authority.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The name in certificates that servers sign themselves.
const MEMBER_NAME: &str = "member.coscan.internal";

/// The credentials by which a server is one of those that share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A file with a [private key](new_key) that all of them have. Each signs a certificate for itself when it starts.
    Key(PathBuf),
    /// Certificates from elsewhere, all as PEM files. Servers are called by the names in their certificates.
    Certificates {
        /// The authority that all certificates are from. Every server with a certificate of it is trusted.
        authority: PathBuf,
        /// The certificate of this server, followed by its chain.
        certificate: PathBuf,
        /// The private key of that certificate.
        key: PathBuf,
    },
}

/// The reason why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {path} as a PEM file: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The files do not fit together.
    #[error("{path} cannot be used: {reason}", path = path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// Makes a new private key for [`Credentials::Key`], as the text of a PEM file.
///
/// # Errors
/// If the system gives no random numbers.
pub fn new_key() -> Result<String, rcgen::Error> {
    Ok(KeyPair::generate()?.serialize_pem())
}

/// The TLS configurations of both sides, each of which accepts only members.
#[derive(Clone, Debug)]
pub struct MutualTls {
    /// The configuration of the side that accepts connections.
    pub server: Arc<ServerConfig>,
    /// The configuration of the side that connects.
    pub client: Arc<ClientConfig>,
    /// The name of all servers, if it is not their address.
    pub name: Option<ServerName<'static>>,
}

struct Identity {
    authority: CertificateDer<'static>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Credentials {
    /// Checks that the credentials can be used.
    ///
    /// # Errors
    /// If a file cannot be read, or they do not fit together.
    pub fn check(&self) -> Result<(), CredentialsError> {
        self.load().map(drop)
    }

    /// Reads the files.
    ///
    /// # Errors
    /// If a file cannot be read, or they do not fit together.
    pub fn load(&self) -> Result<MutualTls, CredentialsError> {
        let (identity, name, path) = match self {
            Self::Key(path) => {
                let name = ServerName::try_from(MEMBER_NAME).expect("it is a name");
                (signed_with(path)?, Some(name), path)
            }
            Self::Certificates { authority, certificate, key } => {
                (read(authority, certificate, key)?, None, certificate)
            }
        };
        let (server, client) = configs(&identity).map_err(|reason| unusable(path, &reason))?;
        Ok(MutualTls { server: Arc::new(server), client: Arc::new(client), name })
    }
}

/// Makes a certificate of this server's own, signed with the key that all have.
fn signed_with(path: &Path) -> Result<Identity, CredentialsError> {
    let text = fs::read_to_string(path).map_err(|reason| unreadable(path, &reason))?;
    let authority_key = KeyPair::from_pem(&text).map_err(|reason| unreadable(path, &reason))?;
    sign(authority_key).map_err(|reason| unusable(path, &reason))
}

fn sign(authority_key: KeyPair) -> Result<Identity, rcgen::Error> {
    // All servers make the same authority from the key: a certificate of it is checked by its name
    // and key alone.
    let mut authority = CertificateParams::default();
    authority.distinguished_name = named("coscan");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let mut member = CertificateParams::new(vec![MEMBER_NAME.to_owned()])?;
    member.distinguished_name = named(MEMBER_NAME);
    member.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(authority, authority_key);
    let certificate = member.signed_by(&key, &issuer)?;
    Ok(Identity {
        authority: authority_certificate.der().clone(),
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    })
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn read(authority: &Path, certificate: &Path, key: &Path) -> Result<Identity, CredentialsError> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|reason| unreadable(certificate, &reason))?;
    let authority_certificate = CertificateDer::from_pem_file(authority);
    Ok(Identity {
        authority: authority_certificate.map_err(|reason| unreadable(authority, &reason))?,
        chain,
        key: PrivateKeyDer::from_pem_file(key).map_err(|reason| unreadable(key, &reason))?,
    })
}

fn configs(
    identity: &Identity,
) -> Result<(ServerConfig, ClientConfig), Box<dyn std::error::Error>> {
    let Identity { authority, chain, key } = identity;
    let provider: Arc<CryptoProvider> = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    let roots = Arc::new(roots);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier.build()?)
        .with_single_cert(chain.clone(), key.clone_key())?;
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain.clone(), key.clone_key())?;
    client.resumption = Resumption::disabled();
    Ok((server, client))
}

fn unreadable(path: &Path, reason: &dyn Display) -> CredentialsError {
    CredentialsError::File { path: path.to_owned(), reason: reason.to_string() }
}

fn unusable(path: &Path, reason: &dyn Display) -> CredentialsError {
    CredentialsError::Unusable { path: path.to_owned(), reason: reason.to_string() }
}
