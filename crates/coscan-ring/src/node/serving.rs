//! The requests of other nodes to this one.

use std::collections::{BTreeMap, BTreeSet};

use coscan_core::{PageIndex, RemoteQuery, Time};

use super::Node;
use super::action::Action;
use crate::ids::{FileId, NodeId, Served};
use crate::message::Message;

/// The most bytes of pages in a message, unless one page has more, so that short messages need not wait long behind it.
const MESSAGE_BYTES_MAX: u64 = 512 << 10;

/// Requests that are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct Serving {
    requests: BTreeMap<Served, Request>,
    /// The requests by the time at which the asker gets the next sign of life.
    signs: BTreeSet<(Time, Served)>,
    /// Bytes held outside of the pool, or reserved for that.
    transit_bytes: u64,
}

#[derive(Clone, Debug)]
struct Request {
    file: FileId,
    /// Pages that were not given to the network.
    unsent: BTreeSet<PageIndex>,
    /// Pages that the network has not taken yet.
    untaken: BTreeSet<PageIndex>,
    /// Whether its pages are held outside of the pool.
    bypasses: bool,
    /// When the asker gets the next sign of life; `None` once the request has ended, until the network has taken the rest.
    sign: Option<Time>,
}

impl Serving {
    pub(super) fn due(&self) -> Option<Time> {
        self.signs.first().map(|&(at, _)| at)
    }

    /// The nodes that asked.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.requests.keys().map(|served| served.node)
    }

    fn set_sign(&mut self, served: Served, sign: Option<Time>) {
        let Some(request) = self.requests.get_mut(&served) else { return };
        let before = std::mem::replace(&mut request.sign, sign);
        before.map(|at| self.signs.remove(&(at, served)));
        self.signs.extend(sign.map(|at| (at, served)));
    }
}

impl Node {
    pub(super) fn serve(
        &mut self,
        now: Time,
        served: Served,
        file: FileId,
        mut pages: Vec<PageIndex>,
        query: RemoteQuery,
    ) {
        if self.serving.requests.contains_key(&served) {
            return; // It has come twice.
        }
        pages.sort_unstable();
        pages.dedup();
        let is_known = self
            .files
            .get(&file)
            .is_some_and(|file| pages.iter().all(|page| (page.0 as usize) < file.pages.len()));
        if !is_known || pages.is_empty() {
            self.send(served.node, Message::Failed { get: served.get });
            return;
        }
        let (unsent, untaken) = (pages.iter().copied().collect(), BTreeSet::new());
        let request = Request { file, unsent, untaken, bypasses: false, sign: None };
        self.serving.requests.insert(served, request);
        let sign = Time(now.0.saturating_add(self.config.queued_ns));
        self.serving.set_sign(served, Some(sign));
        self.actions.push_back(Action::Serve { served, file, pages, query });
    }

    /// Notes that all pages of a request are in the pool, where they stay until [`Action::StopServing`].
    pub fn ready(&mut self, served: Served) {
        let Some(request) = self.open(served) else { return };
        let pages = std::mem::take(&mut request.unsent);
        request.untaken = pages.clone();
        let file = request.file;
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        for page in pages {
            let bytes = self.bytes_of(file, page);
            if batch_bytes + bytes > MESSAGE_BYTES_MAX && !batch.is_empty() {
                let pages = std::mem::take(&mut batch);
                self.send(served.node, Message::Pages { get: served.get, file, pages });
                batch_bytes = 0;
            }
            batch.push(page);
            batch_bytes += bytes;
        }
        if !batch.is_empty() {
            self.send(served.node, Message::Pages { get: served.get, file, pages: batch });
        }
    }

    /// Notes that the pool has no space for the pages of a request. They bypass it, if there is room for that.
    pub fn no_space(&mut self, served: Served) {
        let Some(request) = self.open(served) else { return };
        let (file, pages) = (request.file, request.unsent.iter().copied().collect::<Vec<_>>());
        let transit_bytes = self.serving.transit_bytes + self.bytes(file, &pages);
        if transit_bytes > self.config.transit_bytes_max {
            self.send(served.node, Message::NoRoom { get: served.get });
            self.stop(served);
            return;
        }
        self.serving.transit_bytes = transit_bytes;
        if let Some(request) = self.open(served) {
            request.bypasses = true;
        }
        self.actions.push_back(Action::Bypass { served, file, pages });
    }

    /// Notes that a page that bypasses the pool has been read. The request may have ended since, and another may have
    /// its number.
    pub fn bypassed(&mut self, served: Served, file: FileId, page: PageIndex) {
        let Some(request) = self.open(served).filter(|request| request.file == file) else {
            return;
        };
        if !request.bypasses || !request.unsent.remove(&page) {
            return;
        }
        request.untaken.insert(page);
        self.send(served.node, Message::Pages { get: served.get, file, pages: vec![page] });
    }

    /// Notes that a page could not be read.
    pub fn failed(&mut self, served: Served) {
        if self.open(served).is_some() {
            self.send(served.node, Message::Failed { get: served.get });
            self.stop(served);
        }
    }

    /// Notes that the network has taken a page of a request, or lost it with its connection.
    pub fn sent(&mut self, served: Served, page: PageIndex) {
        let Some(request) = self.serving.requests.get_mut(&served) else { return };
        if !request.untaken.remove(&page) {
            return;
        }
        let (file, bypasses) = (request.file, request.bypasses);
        let is_answered = request.untaken.is_empty() && request.unsent.is_empty();
        if bypasses {
            self.serving.transit_bytes -= self.bytes_of(file, page);
        }
        if is_answered {
            self.end(served);
        }
    }

    /// Bytes held for others outside of the pool, or reserved for that (R2).
    #[must_use]
    pub fn transit_bytes(&self) -> u64 {
        self.serving.transit_bytes
    }

    /// Stops sending for a request. It ends when the network has taken what was sent: until then its pages are in use.
    pub(super) fn stop(&mut self, served: Served) {
        let Some(request) = self.open(served) else { return };
        let unsent = std::mem::take(&mut request.unsent);
        let (file, bypasses, is_over) =
            (request.file, request.bypasses, request.untaken.is_empty());
        self.serving.set_sign(served, None);
        if bypasses {
            self.serving.transit_bytes -= self.bytes(file, &unsent);
        }
        if is_over {
            self.end(served);
        }
    }

    fn end(&mut self, served: Served) {
        self.serving.set_sign(served, None);
        self.serving.requests.remove(&served);
        self.actions.push_back(Action::StopServing { served });
    }

    /// Ends the requests of others for a file that is forgotten; they read it themselves.
    pub(super) fn serve_no_more(&mut self, file: FileId) {
        let requests = self.serving.requests.iter().filter(|(_, request)| request.file == file);
        for served in requests.map(|(&served, _)| served).collect::<Vec<_>>() {
            self.failed(served);
            // Pages that the network still has no longer count.
            while let Some(Request { untaken, .. }) = self.serving.requests.get(&served) {
                match untaken.last() {
                    Some(&page) => self.sent(served, page),
                    None => self.end(served),
                }
            }
        }
    }

    /// Whether a request still needs pages that bypass the pool.
    #[must_use]
    pub fn bypasses(&self, served: Served) -> bool {
        self.serving.requests.get(&served).is_some_and(|request| {
            request.sign.is_some() && request.bypasses && !request.unsent.is_empty()
        })
    }

    pub(super) fn stop_serving(&mut self, gone: NodeId) {
        let requests = self.serving.requests.keys().filter(|served| served.node == gone);
        for served in requests.copied().collect::<Vec<_>>() {
            self.stop(served);
        }
    }

    pub(super) fn send_signs_of_life(&mut self, now: Time) {
        while let Some(&(_, served)) = self.serving.signs.first().filter(|(at, _)| *at <= now) {
            let sign = Time(now.0.saturating_add(self.config.later_ns()));
            self.serving.set_sign(served, Some(sign));
            self.send(served.node, Message::Queued { get: served.get });
        }
    }

    /// A request that has not ended.
    fn open(&mut self, served: Served) -> Option<&mut Request> {
        self.serving.requests.get_mut(&served).filter(|request| request.sign.is_some())
    }

    fn bytes<'p>(&self, file: FileId, pages: impl IntoIterator<Item = &'p PageIndex>) -> u64 {
        pages.into_iter().map(|&page| self.bytes_of(file, page)).sum()
    }
}
