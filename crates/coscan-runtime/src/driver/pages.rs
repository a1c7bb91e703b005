//! Stored pages: loads bring them into the pool; idle and unneeded ones are evicted.

use std::sync::Arc;

use bytes::Bytes;
use coscan_core::{LoadId, PageId};

use super::handle::Driver;
use super::message::{Message, PageRead};
use crate::io::load::LoadOwner;

impl Driver {
    /// The bytes of a page if it is in the pool. They are not pinned: the page may be evicted while they are in use.
    pub(crate) fn cached(&self, page: PageId) -> Option<Bytes> {
        self.lock().frames.get(&page).cloned()
    }

    /// Evicts all pages that no running scan needs.
    pub(crate) fn evict_unneeded(self: &Arc<Self>) {
        self.drop_idle(u64::MAX);
        self.call(|state, now| state.core.evict_unneeded(now));
    }
}

impl LoadOwner for Driver {
    fn give_up(self: Arc<Self>, load: LoadId, pages: &[PageId]) -> bool {
        self.call(|state, now| state.give_up(load, pages, now))
    }

    fn report_pages(self: Arc<Self>, load: LoadId, pages: Vec<PageRead>) {
        self.offer(Message::PagesRead { load, pages });
    }

    fn load_dropped(self: Arc<Self>, load: LoadId, pages: Vec<PageId>) {
        self.post(Message::LoadDropped { load, pages });
    }
}
