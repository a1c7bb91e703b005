//! Connections of all protocols: their number (`accept`), what they send (`counted`), encryption (`stream`, `tls`), and
//! a limit on how long clients may take no bytes (`stall`).

mod accept;
mod counted;
mod stall;
mod stream;
mod tls;

pub use accept::{Accepted, ConnectionPermit, Gate, serve_connections};
pub use counted::{CountedStream, Protocol, SentBytes};
pub use stall::StallLimit;
pub use stream::MaybeTls;
pub use tls::{Certificate, TlsError, server_config};
