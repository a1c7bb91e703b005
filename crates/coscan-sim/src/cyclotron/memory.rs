//! The application's part of a node's buffers: fragments that are pinned, and those that were and may be evicted.

use std::collections::{BTreeMap, VecDeque};

/// Fragments outside of transit.
#[derive(Clone, Default, Debug)]
pub(super) struct Application {
    /// The number of times that each fragment is pinned.
    pinned: BTreeMap<u32, usize>,
    /// Fragments that are no longer pinned, the longest ago first.
    cached: VecDeque<u32>,
}

impl Application {
    pub(super) fn pinned(&self) -> usize {
        self.pinned.len()
    }

    pub(super) fn is_pinned(&self, fragment: u32) -> bool {
        self.pinned.contains_key(&fragment)
    }

    pub(super) fn is_cached(&self, fragment: u32) -> bool {
        self.cached.contains(&fragment)
    }

    pub(super) fn pin(&mut self, fragment: u32) {
        self.cached.retain(|&cached| cached != fragment);
        *self.pinned.entry(fragment).or_default() += 1;
    }

    pub(super) fn unpin(&mut self, fragment: u32) {
        let pins = self.pinned.get_mut(&fragment).expect("it is pinned");
        *pins -= 1;
        if *pins == 0 {
            self.pinned.remove(&fragment);
            self.cached.push_back(fragment);
        }
    }

    /// Evicts until at most `cached_max` fragments are cached.
    pub(super) fn evict(&mut self, cached_max: usize) {
        while self.cached.len() > cached_max {
            self.cached.pop_front();
        }
    }
}
