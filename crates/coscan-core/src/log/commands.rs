//! A manager that records every command and every action.
//!
//! The commands are listed once, in `commands!` below: from the list come the [`Command`] of the log, the method that
//! records it and the call that replays it. [`RecordedManager`] gives no other way to change the manager, so a command
//! that is missing from the list cannot be called.

use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::replies::{Reply, Returned};
use super::{Entry, layouts};
use crate::action::Action;
use crate::chunks::ChunkSpec;
use crate::error::{
    AddChunksError, MissingMemory, RemovePagesError, RemoveTableError, RequestError,
    RetireChunksError, StartScanError,
};
use crate::ids::{
    ChunkIndex, DeviceId, GroupIndex, LoadId, PageId, ScanId, TableId, TicketId, Time, WorkerIndex,
};
use crate::layout::Layout;
use crate::manager::ActiveBufferManager;
use crate::memory::{MemoryLimits, MemoryStage};
use crate::pages::Source;
use crate::scan::{RemoteQuery, ScanSpec};

/// An [`ActiveBufferManager`] that may keep a record. Read it like one; change it by the methods of the same names here.
#[derive(Debug)]
pub struct RecordedManager {
    manager: ActiveBufferManager,
    /// The record since it was last taken; `None` if none is kept.
    entries: Option<Vec<Entry>>,
}

impl RecordedManager {
    /// Records a manager that was given no command yet. Its policy MUST be one of
    /// [`PolicyKind`](crate::PolicyKind) with its usual parameters, or the log cannot be replayed.
    #[must_use]
    pub fn recording(manager: ActiveBufferManager) -> Self {
        Self { manager, entries: Some(Vec::new()) }
    }

    /// Keeps no record.
    #[must_use]
    pub fn unrecorded(manager: ActiveBufferManager) -> Self {
        Self { manager, entries: None }
    }

    /// The record since the last call, which is kept in memory until it is taken.
    pub fn take_entries(&mut self) -> Vec<Entry> {
        self.entries.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Keeps no record from now on.
    pub fn stop_recording(&mut self) {
        self.entries = None;
    }

    /// See [`ActiveBufferManager::poll_action`].
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.manager.poll_action();
        let until = self.manager.poll_timeout();
        self.note(|| action.clone().map_or(Entry::Settled { until }, Entry::Action));
        action
    }

    fn note(&mut self, entry: impl FnOnce() -> Entry) {
        if let Some(entries) = &mut self.entries {
            entries.push(entry());
        }
    }
}

impl Deref for RecordedManager {
    type Target = ActiveBufferManager;

    fn deref(&self) -> &ActiveBufferManager {
        &self.manager
    }
}

/// Takes for each command its name in the log with its arguments, its return type, and the call.
macro_rules! commands {
    ($(
        $name:ident { $($(#[$form:meta])? $argument:ident: $type:ty),* } -> $returned:ty
            = $method:ident($($passed:expr),*);
    )*) => {
        /// A command or event: a call of the method of [`ActiveBufferManager`] that has its name, with its arguments.
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the methods say what the arguments are")]
        pub enum Command {
            $(
                #[doc = concat!("See [`ActiveBufferManager::", stringify!($method), "`].")]
                $name { $($(#[$form])? $argument: $type),* },
            )*
        }

        impl Command {
            /// Executes it; returns the recorded part of its return value.
            pub(super) fn apply(self, manager: &mut ActiveBufferManager) -> Option<Reply> {
                match self {
                    $(Self::$name { $($argument),* } => manager.$method($($passed),*).reply(),)*
                }
            }
        }

        /// The commands and events.
        impl RecordedManager {
            $(
                #[doc = concat!("See [`ActiveBufferManager::", stringify!($method), "`].")]
                pub fn $method(&mut self, $($argument: $type),*) -> $returned {
                    self.note(|| Entry::Command(Command::$name {
                        $($argument: Clone::clone(&$argument)),*
                    }));
                    let returned = self.manager.$method($($passed),*);
                    if let Some(reply) = returned.reply() {
                        self.note(|| Entry::Reply(reply));
                    }
                    returned
                }
            )*
        }
    };
}

commands! {
    AddPages { bytes: Vec<u64> } -> PageId
        = add_pages(&bytes);
    RemovePages { now: Time, pages: Range<PageId> } -> Result<(), RemovePagesError>
        = remove_pages(now, pages);
    RegisterTable { group_count: usize, device: DeviceId } -> TableId
        = register_table(group_count, device);
    RegisterLayout { #[serde(with = "layouts")] layout: Arc<Layout>, device: DeviceId } -> (TableId, PageId)
        = register_layout(&layout, device);
    AppendChunks { table: TableId, chunks: Vec<ChunkSpec> } -> Result<Vec<ChunkIndex>, AddChunksError>
        = append_chunks(table, &chunks);
    RetireChunks { now: Time, table: TableId, chunks: Vec<Range<ChunkIndex>> } -> Result<(), RetireChunksError>
        = retire_chunks(now, table, &chunks);
    RemoveTable { now: Time, table: TableId } -> Result<(), RemoveTableError>
        = remove_table(now, table);
    StartScan { now: Time, spec: ScanSpec } -> Result<ScanId, StartScanError>
        = start_scan(now, &spec);
    StartRemoteScan { now: Time, spec: ScanSpec, query: RemoteQuery } -> Result<ScanId, StartScanError>
        = start_remote_scan(now, &spec, query);
    RegisterInterest { now: Time, table: TableId, groups: Vec<GroupIndex>, chunks: Vec<Range<ChunkIndex>> } -> Result<ScanId, StartScanError>
        = register_interest(now, table, &groups, &chunks);
    ExtendScan { now: Time, scan: ScanId, chunks: Vec<Range<ChunkIndex>> } -> Result<(), StartScanError>
        = extend_scan(now, scan, &chunks);
    RequestChunk { now: Time, scan: ScanId, worker: WorkerIndex } -> Result<(), RequestError>
        = request_chunk(now, scan, worker);
    ReleaseChunk { now: Time, scan: ScanId, worker: WorkerIndex } -> ()
        = release_chunk(now, scan, worker);
    PauseWorker { now: Time, scan: ScanId, worker: WorkerIndex } -> ()
        = pause_worker(now, scan, worker);
    WithdrawWorker { now: Time, scan: ScanId, worker: WorkerIndex } -> ()
        = withdraw_worker(now, scan, worker);
    PruneScan { now: Time, scan: ScanId, chunks: Vec<ChunkIndex> } -> ()
        = prune_scan(now, scan, chunks);
    CancelScan { now: Time, scan: ScanId } -> ()
        = cancel_scan(now, scan);
    SetPoolBytes { now: Time, pool_bytes: u64 } -> u64
        = set_pool_bytes(now, pool_bytes);
    SetMemoryLimits { now: Time, limits: MemoryLimits } -> Result<(), MissingMemory>
        = set_memory_limits(now, limits);
    TakeMemory { now: Time, bytes: u64, spare_bytes_max: u64 } -> Result<u64, MissingMemory>
        = take_memory(now, bytes, spare_bytes_max);
    CoverOverdraft { now: Time, overdraft_bytes: u64 } -> u64
        = cover_overdraft(now, overdraft_bytes);
    ReturnMemory { now: Time, bytes: u64 } -> ()
        = return_memory(now, bytes);
    GrowPool { now: Time, pool_bytes: u64 } -> Result<(), MissingMemory>
        = grow_pool(now, pool_bytes);
    RequestMemory { now: Time, stage: MemoryStage, scan: Option<ScanId>, bytes: u64 } -> Result<TicketId, MissingMemory>
        = request_memory(now, stage, scan, bytes);
    WithdrawMemoryRequest { now: Time, ticket: TicketId } -> ()
        = withdraw_memory_request(now, ticket);
    EvictUnneeded { now: Time } -> ()
        = evict_unneeded(now);
    EvictIdle { now: Time } -> ()
        = evict_idle(now);
    SliceDecoded { table: TableId, chunk: ChunkIndex, group: GroupIndex } -> ()
        = slice_decoded(table, chunk, group);
    SliceDropped { table: TableId, chunk: ChunkIndex, group: GroupIndex } -> ()
        = slice_dropped(table, chunk, group);
    SetSource { now: Time, pages: Range<PageId>, source: Source } -> ()
        = set_source(now, pages, source);
    OfferPage { now: Time, page: PageId } -> bool
        = offer_page(now, page);
    PageLoaded { now: Time, load: LoadId, page: PageId } -> ()
        = page_loaded(now, load, page);
    PageFailed { now: Time, load: LoadId, page: PageId } -> ()
        = page_failed(now, load, page);
    HandleTimeout { now: Time } -> ()
        = handle_timeout(now);
}

impl Command {
    /// The time of the command; `None` for commands without one.
    #[must_use]
    pub fn now(&self) -> Option<Time> {
        match self {
            Self::AddPages { .. }
            | Self::RegisterTable { .. }
            | Self::RegisterLayout { .. }
            | Self::AppendChunks { .. }
            | Self::SliceDecoded { .. }
            | Self::SliceDropped { .. } => None,
            Self::RemovePages { now, .. }
            | Self::RetireChunks { now, .. }
            | Self::SetSource { now, .. }
            | Self::OfferPage { now, .. }
            | Self::RemoveTable { now, .. }
            | Self::StartScan { now, .. }
            | Self::StartRemoteScan { now, .. }
            | Self::RegisterInterest { now, .. }
            | Self::ExtendScan { now, .. }
            | Self::RequestChunk { now, .. }
            | Self::ReleaseChunk { now, .. }
            | Self::PauseWorker { now, .. }
            | Self::WithdrawWorker { now, .. }
            | Self::PruneScan { now, .. }
            | Self::CancelScan { now, .. }
            | Self::SetPoolBytes { now, .. }
            | Self::SetMemoryLimits { now, .. }
            | Self::TakeMemory { now, .. }
            | Self::CoverOverdraft { now, .. }
            | Self::ReturnMemory { now, .. }
            | Self::GrowPool { now, .. }
            | Self::RequestMemory { now, .. }
            | Self::WithdrawMemoryRequest { now, .. }
            | Self::EvictUnneeded { now }
            | Self::EvictIdle { now }
            | Self::PageLoaded { now, .. }
            | Self::PageFailed { now, .. }
            | Self::HandleTimeout { now } => Some(*now),
        }
    }
}
