//! Servers with certificates of their own instead of a key.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::servers::Servers;
use crate::Credentials;
use crate::handshake::{Purpose, dial};

/// An authority, and the certificates that it has signed.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap().pem();
        std::fs::write(directory.path().join("ca"), certificate).unwrap();
        Self { directory, issuer: Issuer::new(authority, key) }
    }

    /// A certificate for a host, and its key.
    fn sign(&self, host: &str) -> (PathBuf, PathBuf) {
        let mut server = CertificateParams::new([host.to_owned()]).unwrap();
        server.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = server.signed_by(&key, &self.issuer).unwrap().pem();
        let paths =
            ["certificate", "key"].map(|what| self.directory.path().join(format!("{host}.{what}")));
        std::fs::write(&paths[0], certificate).unwrap();
        std::fs::write(&paths[1], key.serialize_pem()).unwrap();
        let [certificate, key] = paths;
        (certificate, key)
    }

    /// The credentials of a server of this host that trusts this authority.
    fn credentials(&self, host: &str) -> Credentials {
        self.credentials_by(self, host)
    }

    /// The credentials of a server of this host, signed by another authority.
    fn credentials_by(&self, signer: &Self, host: &str) -> Credentials {
        let (certificate, key) = signer.sign(host);
        Credentials::Certificates { authority: self.directory.path().join("ca"), certificate, key }
    }
}

/// Whether a server is reached.
async fn reaches(
    credentials: &Credentials,
    servers: &Servers,
    server: usize,
) -> Result<(), String> {
    let tls = credentials.load().unwrap();
    let dialed = dial("127.0.0.1:1", servers.address(server), Purpose::Discovery, &tls).await;
    dialed.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_certificates_of_one_authority_share() {
    let authority = Authority::new();
    let right = || authority.credentials("127.0.0.1");
    let servers = Servers::start_with(vec![right(), right()]).await;
    assert!(servers.scan(0).await && servers.scan(1).await);
    assert_eq!(servers.bytes_read(), servers.table_bytes);
    assert_eq!(reaches(&right(), &servers, 0).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_or_host_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let right = authority.credentials("127.0.0.1");
    let of_other_host = authority.credentials("other.example");
    let of_other_authority = authority.credentials_by(&other, "127.0.0.1");
    let servers =
        Servers::unconnected(vec![right.clone(), of_other_host, of_other_authority.clone()]).await;
    assert_eq!(reaches(&right, &servers, 0).await, Ok(()));
    for (server, reason) in [(1, "certificate not valid for name"), (2, "BadSignature")] {
        let refused = reaches(&right, &servers, server).await.unwrap_err();
        // Both authorities have the same name.
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(reaches(&of_other_authority, &servers, 0).await.is_err(), "the server refuses, too");
}
