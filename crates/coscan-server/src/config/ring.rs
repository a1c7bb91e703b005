//! Settings for sharing reads with other servers.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Other servers with which this one shares what it reads.
///
/// ```toml
/// [ring]
/// listen = "0.0.0.0:5440"
/// address = "db1.internal:5440"
/// join = ["db1.internal:5440"]
/// zone = "eu-west-1a"
/// stores = ["s3://bucket/sales/"]
/// key = "ring.key"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ring {
    /// The address at which the other servers connect.
    pub listen: Option<SocketAddr>,
    /// The address by which the other servers reach this one, `host:port`. Default: `listen`.
    pub address: Option<String>,
    /// Addresses of other servers. One is enough, since that server knows the others.
    pub join: Vec<String>,
    /// The zone of this server. Pages are not sent between zones.
    pub zone: String,
    /// The stores to share, as prefixes of URLs or directories of this machine. All servers must see the same files
    /// there.
    pub stores: Vec<String>,
    /// The way of sharing. If nothing is shared, the other settings may be incomplete.
    pub mode: RingMode,
    /// The key that all servers have, made with `coscan ring key`. With `certificate`, the private key of the
    /// certificate.
    pub key: Option<PathBuf>,
    /// The authority that has issued the certificates of all servers, as a PEM file.
    pub ca: Option<PathBuf>,
    /// The certificate of this server, as a PEM file.
    pub certificate: Option<PathBuf>,
}

/// The way in which servers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingMode {
    /// No sharing. Each server reads everything itself.
    Off,
    /// Each page is read by its owner among the servers, and sent to the servers that need it.
    #[default]
    Direct,
    /// Pages go round from server to server, each as long as enough servers take it, as in the Data Cyclotron. Either
    /// all servers of a ring have this mode, or none.
    Circulate,
    /// As `direct`, as long as other servers give this one at least 1.2 times the bytes per second of the store, which
    /// it measures.
    Auto,
}

impl fmt::Display for RingMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Off => "off",
            Self::Direct => "direct",
            Self::Circulate => "circulate",
            Self::Auto => "auto",
        })
    }
}

impl Ring {
    /// The address to listen at, if anything is shared.
    pub(crate) fn listens_at(&self) -> Option<SocketAddr> {
        self.listen.filter(|_| self.mode != RingMode::Off)
    }

    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        let paths = [&mut self.key, &mut self.ca, &mut self.certificate];
        paths.into_iter().flatten().for_each(|path| *path = directory.join(&*path));
    }

    /// Describes invalid settings, one sentence for each.
    pub(super) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.mode == RingMode::Off {
            return errors;
        }
        let mut check = |is_wrong: bool, sentence: &str| {
            if is_wrong {
                errors.push(sentence.to_owned());
            }
        };
        check(
            self.listen.is_none(),
            "ring.listen is missing: where the other servers connect, for example 10.0.0.1:5440",
        );
        check(
            self.join.iter().any(|address| !has_port(address)),
            "ring.join has an address without a port; write host:port",
        );
        check(
            self.stores.is_empty(),
            "ring.stores is empty; list what is shared, for example s3://bucket/sales/ or /mnt/data",
        );
        check(
            self.address.is_none()
                && self.listen.is_some_and(|listen| listen.ip().is_unspecified()),
            "ring.listen is all addresses of this machine; set ring.address to the one that the others use",
        );
        check(
            self.address.as_ref().is_some_and(|address| !has_port(address)),
            "ring.address has no port; write host:port",
        );
        check(
            self.key.is_none(),
            "ring.key is missing; make one with `coscan ring key > ring.key` and copy it to all servers",
        );
        check(
            self.ca.is_some() != self.certificate.is_some(),
            "ring.ca and ring.certificate go together, with ring.key as the key of the certificate",
        );
        errors
    }
}

pub(super) fn has_port(address: &str) -> bool {
    address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
