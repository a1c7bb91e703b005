//! The bound on waits above which a run counts as broken.

use coscan_core::{GroupIndex, Index, Layout};

use super::Options;
use crate::disk::transfer_ns;
use crate::machine::{Disk, Machine};
use crate::workload::Workload;

/// Nanoseconds within which every wait ends: the time of the whole workload if each query read and processed all of its
/// table, nothing were shared and nothing overlapped, plus the space timeout, all times 16. It detects endless waits; it
/// does not measure fairness.
pub(super) fn wait_ns_max(workload: &Workload, machine: &Machine, options: Options) -> u64 {
    let tables: Vec<_> = workload.tables.iter().map(|table| Size::of(&table.layout)).collect();
    let times = workload.queries().map(|query| {
        let size = &tables[query.table];
        let work_ns = query.cost.ns(size.rows, size.bytes);
        size.read_ns(machine.disk).saturating_add(work_ns)
    });
    let delay_ns = options.faults.map_or(0, |faults| faults.rates.within_ns);
    let space_timeout_ns = machine.config.space_timeout_ns.saturating_add(delay_ns);
    times.fold(space_timeout_ns, u64::saturating_add).saturating_mul(16)
}

/// All slices of a table; a page counts once for each chunk that it serves.
struct Size {
    chunks: u64,
    rows: u64,
    pages: u64,
    bytes: u64,
}

impl Size {
    fn of(layout: &Layout) -> Self {
        let groups = || (0..layout.group_count()).map(GroupIndex::from_usize);
        let slices =
            layout.chunks().flat_map(|chunk| groups().map(move |group| layout.slice(chunk, group)));
        let mut size = Self {
            chunks: layout.chunk_count() as u64,
            rows: layout.row_count(),
            pages: 0,
            bytes: 0,
        };
        for slice in slices {
            size.pages += slice.len() as u64;
            size.bytes += slice.iter().map(|&page| layout.bytes_of(page)).sum::<u64>();
        }
        size
    }

    /// Nanoseconds to read it when each page is a request of its own and nothing is read at the same time.
    fn read_ns(&self, disk: Disk) -> u64 {
        let (request_ns, bytes_per_second) = match disk {
            Disk::Perfect { ns_per_chunk } => return self.chunks.saturating_mul(ns_per_chunk),
            Disk::SeekTransfer { seek_ns, bytes_per_second }
            | Disk::Raid { seek_ns, bytes_per_second, .. } => (seek_ns, bytes_per_second),
            Disk::ObjectStore {
                latency_ns,
                bytes_per_second_per_request,
                bytes_per_second,
                ..
            } => (latency_ns, bytes_per_second.min(bytes_per_second_per_request)),
        };
        let requests_ns = self.pages.saturating_mul(request_ns);
        requests_ns.saturating_add(transfer_ns(self.bytes, bytes_per_second))
    }
}
