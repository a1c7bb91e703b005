//! Pages for other servers, outside of the driver: read past the pool, and sent.

use std::sync::Arc;

use coscan_core::{LoadId, PageId, PageIndex};
use coscan_ring::{NodeId, Served};

use super::handle::Driver;
use super::message::{Message, PageRead};
use crate::error::ScanError;
use crate::io::load::LoadOwner;
use crate::peers::{FragmentId, SentPages};

/// Receives the pages of a load that bypasses the pool.
#[derive(Debug)]
pub(super) struct Bypass {
    pub(super) driver: Arc<Driver>,
    pub(super) served: Served,
}

impl LoadOwner for Bypass {
    fn give_up(self: Arc<Self>, _: LoadId, pages: &[PageId]) -> bool {
        self.driver.call(|state, now| state.give_up_bypass(self.served, pages, now))
    }

    fn report_pages(self: Arc<Self>, _: LoadId, pages: Vec<PageRead>) {
        self.driver.offer(Message::PagesBypassed { served: self.served, pages });
    }

    fn load_dropped(self: Arc<Self>, _: LoadId, pages: Vec<PageId>) {
        let dropped = |page| (page, Err(ScanError::ShutDown));
        let pages = pages.into_iter().map(dropped).collect();
        self.driver.post(Message::PagesBypassed { served: self.served, pages });
    }
}

impl SentPages for Driver {
    fn taken(self: Arc<Self>, served: Served, pages: Vec<PageIndex>) {
        self.post(Message::PagesTaken { served, pages });
    }

    fn fragment_taken(self: Arc<Self>, to: NodeId, fragment: FragmentId) {
        self.offer(Message::FragmentSent { to, fragment });
    }
}
