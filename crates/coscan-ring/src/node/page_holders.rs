//! Advice about pages: this node tells those that need a page that it has it, and remembers what others have.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use coscan_core::{PageIndex, Source, Time};

use super::Node;
use super::action::Action;
use super::config::Sharing;
use super::needing::known_rows;
use crate::ids::{FileId, NodeId, RemoteInterest};
use crate::message::Message;

/// Pages in a message about what a node has: some 100 kB of offsets.
const NEWS_PAGES_MAX: usize = 10_000;

/// The knowledge of nodes about each other's pools.
#[derive(Clone, Debug, Default)]
pub(super) struct Advice {
    /// Scans of other nodes that need something.
    interests: BTreeSet<RemoteInterest>,
    /// The nodes that were told, or are about to be, that this one has a page.
    told: BTreeMap<(FileId, PageIndex), BTreeSet<NodeId>>,
    /// The news that is about to be sent: whether this node has the page.
    pending: BTreeMap<(NodeId, FileId), BTreeMap<PageIndex, bool>>,
    /// The time at which it is sent.
    due: Option<Time>,
    /// The other nodes that have a page.
    holders: BTreeMap<(FileId, PageIndex), BTreeSet<NodeId>>,
}

impl Advice {
    /// The nodes that need or have something, or were told something.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let wanting = self.interests.iter().map(|interest| interest.node);
        let holding = self.holders.values().flatten().copied();
        let told = self.told.values().flatten().copied();
        wanting.chain(holding).chain(told)
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    fn add_news(&mut self, to: NodeId, file: FileId, page: PageIndex, has: bool, due: Time) {
        let news = self.pending.entry((to, file)).or_default();
        match news.remove(&page) {
            Some(before) if before != has => {} // It does not know yet, and need not.
            _ => {
                news.insert(page, has);
            }
        }
        self.due.get_or_insert(due);
    }
}

impl Node {
    /// Notes that this node has, or is about to have, a page that scans of these nodes need.
    pub fn page_kept(
        &mut self,
        now: Time,
        file: FileId,
        page: PageIndex,
        wanted_by: impl IntoIterator<Item = NodeId>,
    ) {
        if self.config.sharing < Sharing::All {
            return;
        }
        let due = Time(now.0.saturating_add(self.config.have_delay_ns));
        for node in wanted_by {
            if self.advice.told.entry((file, page)).or_default().insert(node) {
                self.advice.add_news(node, file, page, true, due);
            }
        }
    }

    /// Notes that this node had a page already, or was about to, when a scan of another node announced that it needs
    /// it. That node is told even if it was told before, because it may have forgotten.
    pub fn page_wanted(&mut self, now: Time, file: FileId, page: PageIndex, by: NodeId) {
        if let Some(told) = self.advice.told.get_mut(&(file, page)) {
            told.remove(&by);
        }
        if let Some(news) = self.advice.pending.get_mut(&(by, file)) {
            news.remove(&page);
        }
        self.page_kept(now, file, page, [by]);
    }

    /// Notes that this node does not have a page any more.
    pub fn page_evicted(&mut self, now: Time, file: FileId, page: PageIndex) {
        let due = Time(now.0.saturating_add(self.config.have_delay_ns));
        for node in self.advice.told.remove(&(file, page)).into_iter().flatten() {
            self.advice.add_news(node, file, page, false, due);
        }
    }

    pub(super) fn send_advice(&mut self, now: Time) {
        if self.advice.due.is_none_or(|due| due > now) {
            return;
        }
        self.advice.due = None;
        for ((to, file), news) in std::mem::take(&mut self.advice.pending) {
            let with = |has| {
                let pages = news.iter().filter(|&(_, &known)| known == has);
                pages.map(|(&page, _)| page).collect::<Vec<_>>()
            };
            for pages in with(true).chunks(NEWS_PAGES_MAX) {
                self.send(to, Message::Have { file, pages: pages.to_vec() });
            }
            for pages in with(false).chunks(NEWS_PAGES_MAX) {
                self.send(to, Message::Evicted { file, pages: pages.to_vec() });
            }
        }
    }

    pub(super) fn nearby(&mut self, from: NodeId, file: FileId, pages: &[PageIndex], has: bool) {
        let Some(count) = self.files.get(&file).map(|file| file.pages.len()) else {
            return;
        };
        for &page in pages.iter().filter(|page| (page.0 as usize) < count) {
            self.set_holder(from, (file, page), has);
        }
    }

    /// Tells the buffer manager when the owner of a page has it, and when it no longer does.
    fn set_holder(&mut self, node: NodeId, (file, page): (FileId, PageIndex), has: bool) {
        let before = self.source_of(file, page);
        let holders = self.advice.holders.entry((file, page)).or_default();
        match has {
            true => holders.insert(node),
            false => holders.remove(&node),
        };
        if holders.is_empty() {
            self.advice.holders.remove(&(file, page));
        }
        if self.source_of(file, page) != before {
            self.set_sources(file, [page]);
        }
    }

    /// The source of a page. What this node owns itself comes from the device, whichever other node has it.
    pub(super) fn source_of(&self, file: FileId, page: PageIndex) -> Source {
        if !self.reads_elsewhere(file, page) {
            return Source::Device;
        }
        // The owner is asked, so it does not help that others have it.
        match self.owner_has(file, page) {
            true => Source::PeerPool,
            false => Source::Peer,
        }
    }

    /// Whether a node has said that it has a page.
    pub(super) fn is_held_by(&self, node: NodeId, file: FileId, page: PageIndex) -> bool {
        self.advice.holders.get(&(file, page)).is_some_and(|nodes| nodes.contains(&node))
    }

    /// Tells the buffer manager where these pages are read from.
    pub(super) fn set_sources(&mut self, file: FileId, pages: impl IntoIterator<Item = PageIndex>) {
        for page in pages {
            let source = self.source_of(file, page);
            let next = PageIndex(page.0 + 1);
            match self.actions.back_mut() {
                Some(Action::SetSource { file: before, pages, source: same })
                    if (*before, pages.end, *same) == (file, page, source) =>
                {
                    pages.end = next;
                }
                _ => self.actions.push_back(Action::SetSource { file, pages: page..next, source }),
            }
        }
    }

    pub(super) fn want(
        &mut self,
        interest: RemoteInterest,
        file: FileId,
        columns: Vec<u32>,
        rows: &[Range<u64>],
    ) {
        let rows = self.rows_of(file, rows);
        if !rows.is_empty() {
            self.advice.interests.insert(interest);
            self.actions.push_back(Action::Want { interest, file, columns, rows });
        }
    }

    pub(super) fn unwant(&mut self, interest: RemoteInterest, file: FileId, rows: &[Range<u64>]) {
        let rows = self.rows_of(file, rows);
        if !rows.is_empty() && self.advice.interests.contains(&interest) {
            self.actions.push_back(Action::Unwant { interest, file, rows });
        }
    }

    /// The rows of these that exist, each once and in order; none for a file that does not exist.
    fn rows_of(&self, file: FileId, rows: &[Range<u64>]) -> Vec<Range<u64>> {
        let Some(file) = self.files.get(&file) else { return Vec::new() };
        let mut known: Vec<_> = known_rows(&file.extents, rows).collect();
        known.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in known {
            match merged.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        merged
    }

    pub(super) fn forget_interest(&mut self, interest: RemoteInterest) {
        if self.advice.interests.remove(&interest) {
            self.actions.push_back(Action::Forget { interest });
        }
    }

    /// Forgets which nodes have pages of a file.
    pub(super) fn forget_pages(&mut self, file: FileId) {
        let Advice { told, pending, holders, .. } = &mut self.advice;
        told.retain(|(of, _), _| *of != file);
        holders.retain(|(of, _), _| *of != file);
        pending.retain(|(_, of), _| *of != file);
    }

    /// Forgets what a node that is gone needs and has.
    pub(super) fn forget_advice(&mut self, gone: NodeId) {
        let of_node = |scan| RemoteInterest { node: gone, scan };
        let interests: Vec<_> =
            self.advice.interests.range(of_node(0)..=of_node(u64::MAX)).copied().collect();
        interests.into_iter().for_each(|interest| self.forget_interest(interest));
        let held = self.advice.holders.iter().filter(|(_, holders)| holders.contains(&gone));
        for page in held.map(|(&page, _)| page).collect::<Vec<_>>() {
            self.set_holder(gone, page, false);
        }
        self.advice.pending.retain(|(to, _), _| *to != gone);
        self.advice.told.values_mut().for_each(|nodes| {
            nodes.remove(&gone);
        });
    }
}
