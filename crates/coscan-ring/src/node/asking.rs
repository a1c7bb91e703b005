//! What this node wants of others: pages of its loads, and what its scans will need.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use coscan_core::{LoadId, PageIndex, Time};

use super::Node;
use super::action::{Action, Load};
use super::config::Sharing;
use crate::extents::Extents;
use crate::ids::{FileId, GetId, NodeId};
use crate::message::Message;

/// Requests that are not answered in full.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    next: u64,
    requests: BTreeMap<GetId, Request>,
    /// By when the node that was asked was last heard from.
    silent_since: BTreeSet<(Time, GetId)>,
}

#[derive(Clone, Debug)]
struct Request {
    to: NodeId,
    /// What has not come of the load, its pages in order.
    missing: Load,
    /// Whether the node that was asked stands in for another that did not answer.
    is_fallback: bool,
    asked: Time,
    /// When it was last heard from, or patience ended.
    heard: Time,
}

impl Asked {
    /// Nothing yet; requests are numbered from `first` on.
    pub(super) fn from(first: GetId) -> Self {
        Self { next: first.0, ..Self::default() }
    }

    fn add(&mut self, request: Request) -> GetId {
        let get = GetId(self.next);
        self.next += 1;
        self.silent_since.insert((request.heard, get));
        self.requests.insert(get, request);
        get
    }

    fn remove(&mut self, get: GetId) -> Option<Request> {
        let request = self.requests.remove(&get)?;
        self.silent_since.remove(&(request.heard, get));
        Some(request)
    }

    /// The nodes that were asked.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.requests.values().map(|request| request.to)
    }

    /// The node that was asked has said something, which counts until its time is over.
    fn heard(&mut self, now: Time, from: NodeId, get: GetId, patience_ns: u64) {
        if let Some(request) = self.requests.get_mut(&get).filter(|request| request.to == from) {
            self.silent_since.remove(&(request.heard, get));
            request.heard = now.min(Time(request.asked.0.saturating_add(patience_ns)));
            self.silent_since.insert((request.heard, get));
        }
    }

    pub(super) fn due(&self, silence_ns: u64) -> Option<Time> {
        let &(since, _) = self.silent_since.first()?;
        Some(Time(since.0.saturating_add(silence_ns)))
    }

    fn matching(&self, matches: impl Fn(&Request) -> bool) -> Vec<GetId> {
        let found = self.requests.iter().filter(|(_, request)| matches(request));
        found.map(|(&get, _)| get).collect()
    }
}

impl Node {
    /// A load of the buffer manager begins: each of its pages comes from its owner, or from the store.
    pub fn load(&mut self, now: Time, load: &Load) {
        let mut by_owner: BTreeMap<NodeId, Vec<PageIndex>> = BTreeMap::new();
        for &page in &load.pages {
            let owner = match self.reads_elsewhere(load.file, page) {
                true => self.owner_of(load.file, page),
                false => self.id,
            };
            by_owner.entry(owner).or_default().push(page);
        }
        for (owner, pages) in by_owner {
            let part = Load { pages, ..load.clone() };
            if owner == self.id {
                self.actions.push_back(Action::Read(part));
            } else {
                self.ask(now, owner, part, false);
            }
        }
    }

    /// A load is given up.
    pub fn cancel_load(&mut self, load: LoadId) {
        for get in self.asked.matching(|request| request.missing.load == load) {
            let request = self.asked.remove(get).expect("found above");
            self.send(request.to, Message::Cancel { get });
        }
        self.actions.retain(|action| match action {
            Action::Arrived { load: of, .. }
            | Action::Read(Load { load: of, .. })
            | Action::ReadInstead(Load { load: of, .. }) => *of != load,
            _ => true,
        });
    }

    /// A scan of this node will need these rows of these columns of a file. `scan` is a number of the caller's choice. Rows
    /// that are named later are added.
    pub fn need(&mut self, scan: u64, file: FileId, columns: &[u32], rows: &[Range<u64>]) {
        if self.config.sharing < Sharing::Needs {
            return;
        }
        for (owner, rows) in self.by_owner(file, rows) {
            self.told.entry(scan).or_default().insert(owner);
            self.send(owner, Message::Need { scan, file, columns: columns.to_vec(), rows });
        }
    }

    /// Whether a scan has told others what it needs.
    #[must_use]
    pub fn has_told(&self, scan: u64) -> bool {
        self.told.contains_key(&scan)
    }

    /// It does not need these rows any more.
    pub fn unneed(&mut self, scan: u64, file: FileId, rows: &[Range<u64>]) {
        if !self.told.contains_key(&scan) {
            return;
        }
        for (owner, rows) in self.by_owner(file, rows) {
            if self.told[&scan].contains(&owner) {
                self.send(owner, Message::Unneed { scan, file, rows });
            }
        }
    }

    /// It has ended.
    pub fn end_need(&mut self, scan: u64) {
        for owner in self.told.remove(&scan).into_iter().flatten() {
            self.send(owner, Message::End { scan });
        }
    }

    /// A node is no member any more. If it is there all the same, it need not keep anything for this one.
    pub(super) fn end_needs_of(&mut self, gone: NodeId) {
        let told = self.told.iter_mut();
        let scans = told.filter_map(|(&scan, told)| told.remove(&gone).then_some(scan));
        for scan in scans.collect::<Vec<_>>() {
            self.send(gone, Message::End { scan });
        }
    }

    /// These rows by the other nodes that own their extents.
    fn by_owner(&self, file: FileId, rows: &[Range<u64>]) -> BTreeMap<NodeId, Vec<Range<u64>>> {
        let file = self.file(file);
        let mut by_owner: BTreeMap<NodeId, Vec<Range<u64>>> = BTreeMap::new();
        for range in known_rows(&file.extents, rows) {
            for extent in file.extents.of_row(range.start)..=file.extents.of_row(range.end - 1) {
                let owner = file.owners[extent].owner;
                if owner == self.id {
                    continue;
                }
                let of_extent = file.extents.rows(extent);
                let part = range.start.max(of_extent.start)..range.end.min(of_extent.end);
                let parts = by_owner.entry(owner).or_default();
                match parts.last_mut().filter(|last| last.end == part.start) {
                    Some(last) => last.end = part.end,
                    None => parts.push(part),
                }
            }
        }
        by_owner
    }

    fn ask(&mut self, now: Time, to: NodeId, mut missing: Load, is_fallback: bool) {
        missing.pages.sort_unstable();
        let Load { file, pages, query, .. } = missing.clone();
        let request = Request { to, missing, is_fallback, asked: now, heard: now };
        let get = self.asked.add(request);
        self.send(to, Message::Get { get, file, pages, query });
    }

    /// The node that was asked is at it.
    pub(super) fn queued(&mut self, now: Time, from: NodeId, get: GetId) {
        self.asked.heard(now, from, get, self.config.patience_ns);
    }

    /// Pages have come. Those of a request that was given up are dropped: they may have been read meanwhile.
    pub(super) fn pages_came(
        &mut self,
        now: Time,
        (from, get): (NodeId, GetId),
        file: FileId,
        pages: &[PageIndex],
    ) {
        self.queued(now, from, get);
        let is_answered =
            |request: &&mut Request| request.to == from && request.missing.file == file;
        let request = self.asked.requests.get_mut(&get).filter(is_answered);
        let Some(request) = request else { return };
        let came: BTreeSet<_> = pages.iter().copied().collect();
        let load = request.missing.load;
        for page in request.missing.pages.extract_if(.., |page| came.contains(page)) {
            self.actions.push_back(Action::Arrived { load, file, page });
        }
        if request.missing.pages.is_empty() {
            self.asked.remove(get);
        }
    }

    /// The node that was asked will not send the rest.
    pub(super) fn read_instead(&mut self, from: NodeId, get: GetId) {
        if self.asked.requests.get(&get).is_some_and(|request| request.to == from) {
            let request = self.asked.remove(get).expect("found above");
            self.actions.push_back(Action::ReadInstead(request.missing));
        }
    }

    /// Whether these are pages of a request to this node that have not come yet.
    #[must_use]
    pub fn expects(&self, from: NodeId, get: GetId, file: FileId, pages: &[PageIndex]) -> bool {
        self.asked.requests.get(&get).is_some_and(|Request { to, missing, .. }| {
            let is_missing = |page| missing.pages.binary_search(page).is_ok();
            (*to, missing.file) == (from, file)
                && pages.len() <= missing.pages.len()
                && pages.iter().all(is_missing)
        })
    }

    /// Loads that wait for pages of other nodes, with these pages. A load of several owners comes several times.
    pub fn loads_from_others(&self) -> impl Iterator<Item = &Load> {
        self.asked.requests.values().map(|request| &request.missing)
    }

    /// A file is forgotten: what others were asked for is read from the store.
    pub(super) fn ask_no_more(&mut self, file: FileId) {
        for get in self.asked.matching(|request| request.missing.file == file) {
            let request = self.asked.remove(get).expect("found above");
            self.send(request.to, Message::Cancel { get });
            self.actions.push_back(Action::ReadInstead(request.missing));
        }
    }

    /// Nodes that were asked and have not been heard from for too long count as gone for what they were asked.
    pub(super) fn give_up_silent(&mut self, now: Time) {
        while self.asked.due(self.config.silence_ns).is_some_and(|due| due <= now) {
            let (_, get) = self.asked.silent_since.first().copied().expect("one is due");
            let request = self.asked.remove(get).expect("it is listed");
            self.send(request.to, Message::Cancel { get });
            self.ask_again(now, request);
        }
    }

    /// A node is gone: what it was asked for comes from others.
    pub(super) fn ask_others(&mut self, now: Time, gone: NodeId) {
        for get in self.asked.matching(|request| request.to == gone) {
            let request = self.asked.remove(get).expect("found above");
            self.ask_again(now, request);
        }
    }

    /// Asks who stands in for the node that was asked, once; then the store.
    fn ask_again(&mut self, now: Time, request: Request) {
        let Request { to, missing, is_fallback, .. } = request;
        let mut by_node: BTreeMap<Option<NodeId>, Vec<PageIndex>> = BTreeMap::new();
        for &page in &missing.pages {
            let owners = self.owners_of_page(missing.file, page);
            let nodes = [Some(owners.owner), owners.runner_up].into_iter().flatten();
            // Not behind this node: two that ask each other for what both wait for would wait for ever.
            let before = nodes.take_while(|&node| node != self.id);
            let other = before.filter(|_| !is_fallback).find(|&node| node != to);
            by_node.entry(other).or_default().push(page);
        }
        for (node, pages) in by_node {
            let part = Load { pages, ..missing.clone() };
            match node {
                Some(node) => self.ask(now, node, part, true),
                None => self.actions.push_back(Action::ReadInstead(part)),
            }
        }
    }
}

/// Those of these rows that exist.
pub(super) fn known_rows(
    extents: &Extents,
    rows: &[Range<u64>],
) -> impl Iterator<Item = Range<u64>> {
    let row_count = extents.row_count();
    let known = rows.iter().map(move |range| range.start..range.end.min(row_count));
    known.filter(|range| !range.is_empty())
}
