//! Decisions made under the lock, to be carried out after it is released, by the thread that decided.

use std::sync::{Arc, Weak};
use std::task::Waker;

use bytes::Bytes;
use coscan_core::LoadId;
use coscan_ring::{NodeId, Served};
use coscan_storage::table::TableFile;

use super::peers::Peers;
use super::running_scan::RunningScan;
use crate::chunks::decode_cache::Slice;
use crate::io::load::Urgency;
use crate::memory::AnswerSlot;
use crate::observe::events::Subscribers;
use crate::observe::metrics::ScanCounters;
use crate::peers::{CirculatingMessage, FileName, FileOpener, Network, Outgoing, OutgoingFragment};
use crate::scans::parts::{ScanParts, TablePage};
use crate::tables::registry::Registry;

/// The effects of decisions. Under the lock nothing is started, and nothing of others is woken or dropped, since wakers
/// and destructors are their code.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) loads: Vec<DecidedLoad>,
    /// Pages that are read for other servers alone.
    pub(super) bypasses: Vec<DecidedBypass>,
    /// Messages to other servers.
    pub(super) outgoing: Vec<Outgoing>,
    /// Messages to neighbours on the ring.
    pub(super) circulating: Vec<(NodeId, CirculatingMessage)>,
    pub(super) fragments: Vec<OutgoingFragment>,
    /// The network that carries the messages.
    pub(super) network: Option<Arc<dyn Network>>,
    /// Files that others ask for.
    pub(super) opening: Vec<(Weak<dyn FileOpener>, FileName)>,
    /// Loads in flight that are urgent from now on.
    pub(super) escalated: Vec<Urgency>,
    /// Workers whose answer is there.
    pub(super) woken: Vec<Waker>,
    /// Wakers that were replaced.
    pub(super) replaced: Vec<Waker>,
    /// Pages that were evicted.
    pub(super) evicted: Vec<Bytes>,
    /// Pages that went round.
    pub(super) released: Vec<Arc<Bytes>>,
    /// Decoded columns that are no longer needed.
    pub(super) unneeded: Vec<Slice>,
    /// The bytes of these columns.
    pub(super) unneeded_bytes: u64,
    /// Whether a stage has requests for memory that wait, and had none before.
    pub(super) memory_wait_began: bool,
    /// Requests for memory that have ended.
    pub(super) slots: Vec<Arc<AnswerSlot>>,
    /// Scans that have ended.
    pub(super) ended: Vec<RunningScan>,
    /// Files that are released, with their stores.
    pub(super) files: Vec<TableFile>,
    /// The registry, after a panic.
    pub(super) registry: Registry,
    /// Subscribers that get no more events, after a panic.
    pub(super) subscribers: Vec<Subscribers>,
    /// The work for and with other servers, after a panic.
    pub(super) peers: Option<Box<Peers>>,
    /// Whether the pump has something to do.
    pub(super) rings: bool,
}

/// A load that core has decided.
#[derive(Debug)]
pub(super) struct DecidedLoad {
    pub(super) id: LoadId,
    pub(super) pages: Vec<TablePage>,
    pub(super) parts: Arc<ScanParts>,
    pub(super) urgency: Urgency,
    pub(super) counters: Arc<ScanCounters>,
}

/// Pages that are read for another server alone.
#[derive(Debug)]
pub(super) struct DecidedBypass {
    pub(super) served: Served,
    pub(super) pages: Vec<TablePage>,
    pub(super) parts: Arc<ScanParts>,
}
