//! Connections of all protocols: how they come (`accept`), their number (`gate`), what they send (`counted`), encryption
//! (`stream`, `tls`), a limit on how long clients may take no bytes (`stall`), and their end (`linger`).

mod accept;
mod channel_binding;
mod counted;
mod gate;
mod linger;
mod stall;
mod stream;
mod tls;

pub use accept::{Accepted, serve_connections};
pub use counted::{CountedStream, Protocol, SentBytes};
pub use gate::{Gate, Place, TooManyConnections};
pub use linger::Linger;
pub use stall::StallLimit;
pub use stream::MaybeTls;
pub use tls::{Certificate, LoadedCertificate, TlsError, load_certificate};
