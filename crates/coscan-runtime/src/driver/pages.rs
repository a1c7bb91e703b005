//! Stored pages: loads bring them into the pool, the budget bounds it, idle and unneeded ones are evicted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use coscan_core::{LoadId, PageId};

use super::handle::Driver;
use crate::error::ScanError;
use crate::events::EventKind;
use crate::load::LoadOwner;
use crate::memory::ElasticPool;

impl Driver {
    /// The bytes of a page if it is in the pool. They are not pinned: the page may be evicted while they are in use.
    pub(crate) fn cached(&self, page: PageId) -> Option<Bytes> {
        self.lock().frames.get(&page).cloned()
    }

    /// Evicts all pages that no running scan needs.
    pub(crate) fn evict_unneeded(self: &Arc<Self>) {
        self.command(|inner, now| {
            inner.core.evict_unneeded(now);
            inner.deferred.needs_dropped = true;
        });
    }
}

impl LoadOwner for Driver {
    fn needs_any(&self, pages: &[PageId]) -> bool {
        let inner = self.lock();
        inner.check().is_ok() && pages.iter().any(|&page| !inner.core.state().is_unneeded(page))
    }

    fn report_pages(
        self: Arc<Self>,
        load: LoadId,
        pages: Vec<(PageId, Result<Bytes, ScanError>)>,
        is_over: bool,
    ) {
        self.command(|inner, now| {
            if inner.check().is_err() {
                return;
            }
            let failed = pages.iter().filter(|(_, read)| read.is_err()).count();
            for (page, result) in pages {
                match result {
                    Ok(bytes) => {
                        inner.totals.bytes_read += bytes.len() as u64;
                        inner.frames.insert(page, bytes);
                        inner.core.page_loaded(now, load, page);
                    }
                    Err(error) => {
                        inner.read_errors.insert(page, error);
                        inner.core.page_failed(now, load, page);
                    }
                }
            }
            if is_over {
                inner.loads.remove(&load);
                inner.taps.send(now, || EventKind::LoadEnded { load, pages_failed: failed });
            }
            inner.registry.let_go(&mut inner.core, now);
        });
    }
}

impl ElasticPool for Driver {
    fn set_limit_bytes(&self, bytes: u64) -> u64 {
        let driver = self.this.upgrade();
        driver.map_or(0, |driver| driver.decide(|inner, now| inner.core.set_pool_bytes(now, bytes)))
    }

    fn held_bytes(&self) -> u64 {
        self.pool_held_bytes.load(Ordering::Relaxed)
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    fn settle(&self) {
        if let Some(driver) = self.this.upgrade() {
            driver.run_deferred();
        }
    }

    fn memory_freed(&self) {
        self.serve_memory_queue();
    }
}
