//! Connections of all protocols: their number (`accept`), encryption (`stream`, `tls`), and a limit on how long clients
//! may take no bytes (`stall`).

mod accept;
mod stall;
mod stream;
mod tls;

pub use accept::{Accepted, ConnectionPermit, Gate, serve_connections};
pub use stall::StallLimit;
pub use stream::MaybeTls;
pub use tls::{Certificate, TlsError, server_config};
