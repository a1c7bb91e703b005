//! The actions of the node: messages are sent, requests served, pages counted as elsewhere.

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{PageIndex, ScanId, Time};
use coscan_ring::{Action, Message, NodeId, Served};

use crate::driver::state::State;
use crate::driver::walk::Walk;
use crate::peers::{ClusterReport, FileName, Outgoing, Taken};
use crate::scans::parts::ScanParts;

/// The number of pages whose readers are computed while the lock is held once.
const STEP_PAGES: u32 = 1024;

impl State {
    /// Carries out the actions of the node. Returns false if there were none.
    pub(in crate::driver) fn settle_peers(&mut self, now: Time) -> bool {
        let mut was_any = self.settle_circulating(now);
        while let Some(action) = self.peers.as_mut().and_then(|peers| peers.node.poll_action()) {
            was_any = true;
            self.act_for_peers(action, now);
            self.settle_circulating(now); // What it has asked of the node may be answered.
        }
        was_any
    }

    /// Passes the time to the node, if that is due.
    pub(in crate::driver) fn time_out_peers(&mut self, now: Time) {
        if let Some(peers) = &mut self.peers
            && peers.timeout().is_some_and(|time| time <= now)
        {
            peers.node.handle_timeout(now);
            peers.circulating.iter_mut().for_each(|it| it.handle_timeout(now));
            self.settle_peers(now); // Before a walk gives up a load that is to be read after all.
        }
    }

    /// Computes the readers of some more pages. Returns false if those were the last.
    pub(in crate::driver) fn renew_owners(&mut self, now: Time) -> bool {
        let Some(peers) = &mut self.peers else { return false };
        let is_more = peers.node.renew(STEP_PAGES);
        self.settle_peers(now);
        is_more
    }

    fn act_for_peers(&mut self, action: Action, now: Time) {
        match action {
            Action::Send { to, message } => self.send_to_peer(to, message),
            Action::Read(load) => self.read_itself(&load, now),
            Action::ReadInstead(load) => self.read_instead(&load, now),
            Action::Arrived { load, file, page } => self.arrived(load, (file, page), now),
            Action::Serve { served, file, pages, query } => {
                self.serve(served, file, &pages, query, now);
            }
            Action::Bypass { served, file, pages } => self.bypass(served, file, &pages, now),
            Action::StopServing { served } => self.stop_serving(served, now),
            Action::SetSource { file, pages, source } => {
                let shared = self.peers.as_ref().and_then(|peers| peers.files.get(file));
                if let Some(shared) = shared {
                    let pages = shared.page_id(pages.start)..shared.page_id(pages.end);
                    self.core.set_source(now, pages, source);
                }
            }
            Action::Renew => self.leave_to_pump(Walk::RenewOwners),
            Action::Choose { store, reads_alone } => {
                let url = self.peers.as_ref().and_then(|peers| peers.files.url_of(store));
                let from = if reads_alone { "the store alone" } else { "other servers, too" };
                log::info!("files of {} are read from {from} now", url.unwrap_or("a store"));
                self.announce_all_again();
            }
            Action::Want { interest, file, columns, rows } => {
                self.want(interest, file, &columns, &rows, now);
            }
            Action::Unwant { interest, file, rows } => self.unwant(interest, file, &rows, now),
            Action::Forget { interest } => self.forget_interest(interest, now),
        }
    }

    /// Queues a message, with the bytes of its pages.
    pub(super) fn send_to_peer(&mut self, to: NodeId, message: Message) {
        let Some(peers) = &mut self.peers else { return };
        if to == peers.node.id() {
            return self.answer_own_request(message);
        }
        peers.report.requests_made += u64::from(matches!(message, Message::Get { .. }));
        let (mut pages, mut taken) = (Vec::new(), None);
        if let Message::Pages { get, file, pages: sent } = &message {
            let served = Served { node: to, get: *get };
            let Some(shared) = peers.files.get(*file) else { return };
            for &page in sent {
                let bypassed = peers.bypassing.remove(&(served, page));
                let bytes = bytes_to_send(&mut peers.report, bypassed, || {
                    self.frames.get(&shared.page_id(page)).cloned()
                });
                peers.report.bytes_sent += bytes.len() as u64;
                pages.push(bytes);
            }
            taken = Some(Taken { owner: peers.sent_pages.clone(), served, pages: sent.clone() });
        }
        let file = message.file().and_then(|&file| peers.files.get(file));
        let name = |_| file.map(|file| FileName::clone(&file.name));
        let range = |page: PageIndex| file.map(|file| file.range(page));
        if let Some(message) = message.translate(name, range) {
            self.effects.outgoing.push(Outgoing { to, message, pages, _taken: taken });
            self.effects.network.get_or_insert_with(|| Arc::clone(&peers.network));
        }
    }

    /// The parts that a scan reads for another server.
    pub(in crate::driver) fn served_parts(&self, scan: ScanId) -> Option<Arc<ScanParts>> {
        let peers = self.peers.as_ref()?;
        peers.serving.get(&scan).map(|serving| Arc::clone(&serving.parts))
    }

    /// The request of another server that a scan reads for, if it does.
    pub(super) fn served_by(&self, scan: ScanId) -> Option<Served> {
        self.peers.as_ref()?.serving.get(&scan).map(|serving| serving.served)
    }
}

/// The bytes of a page that a request is answered with: those that bypassed the pool, or those in it.
pub(super) fn bytes_to_send(
    report: &mut ClusterReport,
    bypassed: Option<Bytes>,
    cached: impl FnOnce() -> Option<Bytes>,
) -> Bytes {
    if let Some(bytes) = &bypassed {
        report.bytes_bypassed += bytes.len() as u64;
    }
    bypassed.or_else(cached).expect("what is sent is held until then")
}
