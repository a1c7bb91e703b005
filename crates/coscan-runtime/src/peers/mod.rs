//! Other servers that read the same files. What one of them reads is sent to those that need it, too.
//!
//! [`coscan_ring::Node`] decides whom to ask, beside core and under the same lock (`driver::peers`). Here is the view
//! of the program: a [`Cluster`] is given messages, and gives those to send to a [`Network`]. Pages that
//! [circulate](ClusterOptions::circulates) are [fragments](FragmentId).

mod cluster;
mod file_name;
mod fragments;
mod network;
mod options;
mod report;

pub use cluster::Cluster;
pub use file_name::FileName;
pub use fragments::{CirculatingMessage, FragmentId, FragmentSpace, OutgoingFragment};
pub use network::{Network, Outgoing, PeerMessage};
pub use options::ClusterOptions;
pub use report::{ClusterReport, ExtentReport, SharedFileReport};

pub(crate) use network::{FileOpener, SentPages, Taken};
