//! The slow check: the manager's counts, recounted by itself and compared with the ledger.

use coscan_core::{ActiveBufferManager, Index, PageId, ScanId};

use super::{Ledger, Place, ShadowScan};
use crate::violation::{Broken, Rule, ensure};

impl Ledger {
    /// Compares all records of the manager with the ledger. To be called when no more actions come out.
    pub(crate) fn audit(&self, manager: &ActiveBufferManager) -> Result<(), Broken> {
        let audited = manager.audit();
        audited.map_err(|found| Broken { rule: Rule::Records, what: found.to_string() })?;
        let state = manager.state();
        let cached = state.cached_pages().count();
        let expected = self.pages(Place::Cached).count();
        ensure(cached == expected, Rule::Records, || {
            format!("{expected} pages are in the pool, the manager lists {cached}")
        })?;
        for id in self.pages(Place::Cold) {
            ensure(state.is_cold(id), Rule::Records, || format!("{id:?} is cold"))?;
        }
        for id in self.pages(Place::Cached) {
            let (may_go, users) = (state.is_evictable(id), self.page(id).users);
            ensure(!may_go || users == 0, Rule::PagesInUseStay, || {
                format!("{id:?} is in use, yet the manager would evict it")
            })?;
            // A load in flight may hold pages, too.
            ensure(may_go || users > 0 || !self.loads.is_empty(), Rule::Records, || {
                format!("{id:?} is not in use, but the manager would not evict it")
            })?;
        }
        let scans = state.scans().count();
        ensure(scans == self.scans.len(), Rule::Records, || {
            format!("{} scans run, the manager lists {scans}", self.scans.len())
        })?;
        self.scans.iter().try_for_each(|(&id, scan)| self.audit_scan(manager, id, scan))
    }

    fn audit_scan(
        &self,
        manager: &ActiveBufferManager,
        id: ScanId,
        book: &ShadowScan,
    ) -> Result<(), Broken> {
        let scan = manager.state().scan(id);
        let needed = scan.is_some_and(|scan| scan.needed().iter().eq(book.needed.iter()));
        ensure(needed, Rule::EachChunkOnce, || {
            let known = scan.map(coscan_core::Scan::needed);
            format!("{id:?} still needs {:?}, the manager says {known:?}", book.needed)
        })?;
        let scan = scan.expect("just seen");
        for chunk in book.needed.iter() {
            let places = || self.pages_of(book, chunk).map(|page| self.page(page).place);
            let available = places().all(|place| place == Place::Cached);
            let covered = places().all(|place| place != Place::Cold);
            let known = (scan.is_available(chunk), scan.is_covered(chunk));
            ensure(known == (available, covered), Rule::Records, || {
                format!(
                    "{chunk:?} of {id:?}: available {available}, covered {covered}, \
                     the manager says {known:?}"
                )
            })?;
        }
        Ok(())
    }

    fn pages(&self, place: Place) -> impl Iterator<Item = PageId> {
        let matching = self.pages.iter().enumerate().filter(move |(_, page)| page.place == place);
        matching.map(|(page, _)| PageId::from_usize(page))
    }
}
