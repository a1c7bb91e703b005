//! Other servers that read the same files: what is read by one of them is sent to those that need it, too.
//!
//! What is asked of whom is decided by [`coscan_ring::Node`], beside core and under the same lock (`driver::peers`). Here is
//! what the program sees of it: a [`Cluster`] is given messages, and gives those to send to a [`Network`]. Pages that
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
