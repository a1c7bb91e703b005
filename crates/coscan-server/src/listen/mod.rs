//! Connections before any protocol: how many there are (`accept`), and whether they are encrypted (`stream`, `tls`).

mod accept;
mod stream;
mod tls;

pub use accept::{Accepted, Entered, Gate, accept};
pub use stream::MaybeTls;
pub use tls::{Certificate, TlsError, server_config};
