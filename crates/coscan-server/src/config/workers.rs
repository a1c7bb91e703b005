//! Settings for queries over several workers.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Config, units};

/// Workers, among which queries are divided.
///
/// ```toml
/// [workers]
/// listen = "0.0.0.0:5450"
/// members = ["db1.internal:5450", "db2.internal:5450", "db3.internal:5450"]
/// stores = ["s3://bucket/sales/"]
/// key = "ring.key"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workers {
    /// The address at which this server, as a worker, gets tasks from others.
    pub listen: Option<SocketAddr>,
    /// The addresses of all workers, `host:port`, among which this server divides its queries.
    pub members: Vec<String>,
    /// The stores that tasks of others may read here, as prefixes of URLs or directories of this machine.
    pub stores: Vec<String>,
    /// Scans of at least this many stored bytes are divided among all workers; smaller ones are executed by one. Default: 64 MB.
    #[serde(deserialize_with = "units::bytes_option")]
    pub divided_bytes_min: Option<u64>,
    /// The most distributed queries that this server executes as a worker, and has running as a coordinator. Others wait up to a
    /// minute. Default: 16.
    pub queries_max: Option<NonZeroUsize>,
    /// The key that all servers have, made with `coscan ring key`. With `certificate`, the private key of the
    /// certificate.
    pub key: Option<PathBuf>,
    /// The authority that has issued the certificates of all servers, as a PEM file.
    pub ca: Option<PathBuf>,
    /// The certificate of this server, as a PEM file.
    pub certificate: Option<PathBuf>,
    /// Whether workers on this machine have no key. Everyone on this machine can then execute plans in them.
    pub insecure: bool,
}

impl Workers {
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        let paths = [&mut self.key, &mut self.ca, &mut self.certificate];
        paths.into_iter().flatten().for_each(|path| *path = directory.join(&*path));
    }

    /// Describes invalid settings, one sentence for each.
    pub(super) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let mut check = |is_wrong: bool, sentence: &str| {
            if is_wrong {
                errors.push(sentence.to_owned());
            }
        };
        check(
            self.listen.is_none() && self.members.is_empty(),
            "workers.listen and workers.members are missing: a worker listens, for example at 10.0.0.1:5450, and a \
             server that divides its queries names the workers",
        );
        check(
            self.members.iter().any(|address| !super::ring::has_port(address)),
            "workers.members has an address without a port; write host:port",
        );
        check(
            self.listen.is_some() && self.stores.is_empty(),
            "workers.stores is empty; list what tasks may read here, for example s3://bucket/sales/ or /mnt/data",
        );
        check(
            self.key.is_none() && !self.insecure,
            "workers.key is missing; make one with `coscan ring key > ring.key` and copy it to all servers",
        );
        check(
            self.insecure && self.listen.is_some_and(|address| !Config::is_loopback(address)),
            "workers.insecure is set, and other machines could reach workers.listen; listen at 127.0.0.1, or use \
             workers.key",
        );
        check(
            self.insecure && !self.members.iter().all(|address| is_of_this_machine(address)),
            "workers.insecure is set, and workers.members has other machines; set workers.key",
        );
        check(
            self.ca.is_some() != self.certificate.is_some(),
            "workers.ca and workers.certificate go together, with workers.key as the key of the certificate",
        );
        check(
            !cfg!(feature = "distributed"),
            "workers is set, and this program has no distributed queries",
        );
        errors
    }
}

fn is_of_this_machine(address: &str) -> bool {
    match address.parse() {
        Ok(address) => Config::is_loopback(address),
        Err(_) => address.rsplit_once(':').is_some_and(|(host, _)| host == "localhost"),
    }
}
