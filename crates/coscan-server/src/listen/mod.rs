//! Connections of all protocols: how they are accepted (`accept`), their number (`connection_limit`), their bytes (`counted`),
//! encryption (`stream`, `tls`), a limit on the time for which clients may read no bytes (`stall`), and their end
//! (`linger`).

mod accept;
mod channel_binding;
mod connection_limit;
mod counted;
mod linger;
mod stall;
mod stream;
mod tls;

pub use accept::{Accepted, serve_connections};
pub use connection_limit::{ConnectionLimit, Place, TooManyConnections};
pub use counted::{CountedStream, Protocol, SentBytes};
pub use linger::Linger;
pub use stall::StallLimit;
pub use stream::MaybeTls;
pub use tls::{Certificate, LoadedCertificate, TlsError, load_certificate};
