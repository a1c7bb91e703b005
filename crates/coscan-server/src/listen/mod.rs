//! Connections before any protocol: addresses, limits, certificates.

mod tls;

pub use tls::{Certificate, TlsError, server_config};
