//! Carries the messages and pages of servers: one TLS connection to each of the others.
//!
//! A server dials each of the others and writes to that connection. What they write comes over those that they dial. So
//! a connection has one direction, like a wire of the simulator, and no two servers have to agree which of two
//! connections stays. The messages and their receivers are decided elsewhere ([`coscan_runtime::ring`]). Messages may
//! get lost here, late or refused, but not altered.
//!
//! A server that is told of one other [finds](TransportConfig::join) all. Those that it reaches and that reach it, in
//! its zone and with the same stores, share with it.
//!
//! All servers that have the [key](Credentials) trust each other fully: they read each other's pages, whatever the
//! rights of the users on whose behalf they ask.

mod credentials;
mod fragments;
mod frame;
mod handshake;
mod incoming;
mod link;
mod links;
mod members;
mod node_id;
mod outgoing;
mod pings;
mod seeds;
mod stall;
mod strangers;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod traffic;
mod transport;

pub use credentials::{Credentials, CredentialsError, MutualTls, new_key};
pub use node_id::node_id;
pub use transport::{PeerState, PeerStatus, Transport, TransportConfig, TransportError};
