//! The source of pages that others own: the other nodes, or the store, as for a node that shares nothing.
//!
//! If the store gives a node as much as the others do, asking them saves requests, not time, and costs processors. So a
//! node that may choose measures both, for each store: bytes per second while something is requested from it. No other
//! node need know: a node answers requests whatever it has chosen.

use std::collections::BTreeMap;

use coscan_core::{PageIndex, Time};

use super::action::Action;
use super::config::{Choosing, Sharing};
use super::{File, Node};
use crate::ids::{FileId, StoreId};

/// The measurements of each store.
pub(super) type Choices = BTreeMap<StoreId, Choice>;

/// The measurements of a store, and of what other nodes send of its files.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub(super) store: Rate,
    pub(super) others: Rate,
    reads_alone: bool,
    /// When the choice was made, or the first load began.
    since: Option<Time>,
}

/// Bytes per second while any are waited for: an average in which the last measurement counts half.
#[derive(Clone, Debug, Default)]
pub(super) struct Rate {
    /// Bytes that were requested and have not come.
    waiting_bytes: u64,
    waiting_since: Time,
    /// The bytes that came since the last measurement, and the time in which they did.
    bytes: u64,
    busy_ns: u64,
    bytes_per_second: Option<u64>,
}

impl Rate {
    /// Notes that bytes are requested.
    pub(super) fn ask(&mut self, now: Time, bytes: u64) {
        if self.waiting_bytes == 0 {
            self.waiting_since = now;
        }
        self.waiting_bytes += bytes;
    }

    /// Notes that bytes that were requested have come, or will not.
    pub(super) fn end(&mut self, now: Time, bytes: u64, have_come: bool) {
        if self.waiting_bytes == 0 {
            return; // It was asked for before this was counted.
        }
        self.busy_ns += now.since(self.waiting_since);
        self.waiting_since = now;
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
        self.bytes += if have_come { bytes } else { 0 };
    }

    /// Counts a measurement, if it is large enough.
    fn measure(&mut self, limits: &Choosing) {
        let is_enough = self.busy_ns >= limits.measured_ns && self.bytes >= limits.measured_bytes;
        // A source that is waited for this long gives little, or nothing.
        if is_enough || self.busy_ns >= limits.lasts_ns.max(1) {
            let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.busy_ns.max(1));
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            // The previous average counts half.
            let before = self.bytes_per_second.unwrap_or(rate);
            self.bytes_per_second = Some(before / 2 + rate / 2);
            (self.bytes, self.busy_ns) = (0, 0);
        }
    }

    fn forget(&mut self) {
        (self.bytes, self.busy_ns, self.bytes_per_second) = (0, 0, None);
    }
}

impl Choice {
    /// Whether to read alone from now on, if that changes.
    fn changes(&mut self, now: Time, limits: &Choosing) -> Option<bool> {
        self.store.measure(limits);
        self.others.measure(limits);
        let lasts_ns = now.since(*self.since.get_or_insert(now));
        let (store, others) = (self.store.bytes_per_second, self.others.bytes_per_second);
        if self.reads_alone {
            return (lasts_ns >= limits.trial_after_ns).then_some(false);
        }
        let (store, others) = store.zip(others).filter(|_| lasts_ns >= limits.lasts_ns)?;
        (others.saturating_mul(100) < store.saturating_mul(limits.others_min_percent))
            .then_some(true)
    }
}

impl Node {
    /// Whether this node reads files of a store alone, as it has [chosen](super::Config::chooses).
    #[must_use]
    pub fn reads_alone(&self, store: StoreId) -> bool {
        self.choices.get(&store).is_some_and(|choice| choice.reads_alone)
    }

    /// Notes that pages are read from the store, for any node. [`has_read`](Self::has_read) reports each one that has
    /// come.
    pub fn reads(&mut self, now: Time, file: FileId, pages: &[PageIndex]) {
        let Some(of_file) = self.files.get_mut(&file) else { return };
        let bytes = pages.iter().map(|page| of_file.pages[page.0 as usize].1).sum();
        of_file.reading_bytes += bytes;
        self.choice_of(file).store.ask(now, bytes);
    }

    /// Notes that a page has been read from the store, or will not be.
    pub fn has_read(&mut self, now: Time, file: FileId, page: PageIndex, has_come: bool) {
        let Some(of_file) = self.files.get_mut(&file) else { return };
        let (_, bytes) = of_file.pages[page.0 as usize];
        // A read that began before the file was shared was not counted.
        let Some(left) = of_file.reading_bytes.checked_sub(bytes) else { return };
        of_file.reading_bytes = left;
        self.choice_of(file).store.end(now, bytes, has_come);
    }

    /// Stops waiting for reads of a file that is forgotten.
    pub(super) fn read_no_more(&mut self, now: Time, file: FileId) {
        let Some(File { reading_bytes, .. }) = self.files.get(&file) else { return };
        let bytes = *reading_bytes;
        self.choice_of(file).store.end(now, bytes, false);
    }

    /// Forgets measurements of the other nodes, because these have changed.
    pub(super) fn forget_others(&mut self) {
        self.choices.values_mut().for_each(|choice| choice.others.forget());
    }

    /// Notes that other nodes are asked for bytes of a file.
    pub(super) fn others_are_asked(&mut self, now: Time, file: FileId, bytes: u64) {
        self.choice_of(file).others.ask(now, bytes);
    }

    /// Notes that bytes asked of other nodes have come, or will not come.
    pub(super) fn others_have_sent(
        &mut self,
        now: Time,
        file: FileId,
        pages: &[PageIndex],
        have_come: bool,
    ) {
        let bytes = pages.iter().map(|&page| self.bytes_of(file, page)).sum();
        self.choice_of(file).others.end(now, bytes, have_come);
    }

    /// Chooses again, if that is due, before pages of a file are requested.
    pub(super) fn choose(&mut self, now: Time, file: FileId) {
        let Some(limits) = self.config.chooses else { return };
        if self.config.sharing == Sharing::Off || self.members.len() < 2 {
            return;
        }
        let choice = self.choice_of(file);
        let Some(reads_alone) = choice.changes(now, &limits) else { return };
        choice.since = Some(now);
        choice.reads_alone = reads_alone;
        choice.others.forget();
        let store = self.file(file).store;
        self.renew_store(store);
        // Owners that are not asked need keep nothing. Owners that are asked know of no scan.
        self.actions.push_back(Action::Choose { store, reads_alone });
    }

    fn choice_of(&mut self, file: FileId) -> &mut Choice {
        let store = self.file(file).store;
        self.choices.entry(store).or_default()
    }
}
