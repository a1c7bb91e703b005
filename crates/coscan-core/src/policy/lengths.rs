//! Which scans are short beside the others that run.

use std::collections::BTreeMap;

use crate::ids::ScanId;
use crate::scan::{Scan, ScanLength};

/// A scan is short that is this many times shorter than the longest that runs: it does not wait for a processor.
const SHORT: u64 = 16;

/// A short scan of so few chunks passes others at the device, too. Were more scans to do so, they would wait for each
/// other there.
const TINY_CHUNKS: u64 = 2;

/// The lengths of all scans that run.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths {
    /// Chunks that a scan needed in all.
    chunks: BTreeMap<ScanId, u64>,
    longest: u64,
}

impl Lengths {
    /// A scan starts, or needs more.
    pub(super) fn add(&mut self, scan: &Scan) {
        let chunks = scan.report().chunks_needed;
        self.chunks.insert(scan.id(), chunks);
        self.longest = self.longest.max(chunks);
    }

    pub(super) fn remove(&mut self, scan: ScanId) {
        if self.chunks.remove(&scan) == Some(self.longest) {
            self.longest = self.chunks.values().copied().max().unwrap_or(0);
        }
    }

    /// How long a scan is; one that picks pages is tiny in any case.
    pub(super) fn of(&self, scan: &Scan) -> ScanLength {
        let chunks = scan.report().chunks_needed;
        let is_short = chunks * SHORT <= self.longest;
        if scan.picks() || is_short && chunks <= TINY_CHUNKS {
            ScanLength::Tiny
        } else if is_short {
            ScanLength::Short
        } else {
            ScanLength::Long
        }
    }
}
