//! The slow check: the manager's counts, recounted by itself and compared with the ledger.

use coscan_core::{ActiveBufferManager, Index, IndexSet, PageId, ScanId};

use super::{Ledger, Place, ShadowScan};
use crate::simulation::id_map::IdMap;
use crate::violation::{Broken, Rule, ensure};

impl Ledger {
    /// Compares all records of the manager with the ledger. To be called when no more actions come out.
    pub(crate) fn audit(&self, manager: &ActiveBufferManager, names: &IdMap) -> Result<(), Broken> {
        let audited = manager.audit();
        audited.map_err(|found| Broken { rule: Rule::Records, what: found.to_string() })?;
        let state = manager.state();
        let cached = state.cached_pages().count();
        let expected = self.pages(Place::Cached).count();
        ensure(cached == expected, Rule::Records, || {
            format!("{expected} pages are in the pool, the manager lists {cached}")
        })?;
        for id in self.pages(Place::Cold).filter_map(|page| names.id(page)) {
            ensure(state.is_cold(id), Rule::Records, || format!("{id:?} is cold"))?;
        }
        for id in self.pages(Place::Cached) {
            let known = names.id(id);
            ensure(known.is_some(), Rule::Records, || format!("{id:?} is cached, but removed"))?;
            let may_go = known.is_some_and(|known| state.is_evictable(known));
            let users = self.page(id).users;
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
        self.scans.iter().try_for_each(|(&id, scan)| self.audit_scan(manager, names, id, scan))
    }

    fn audit_scan(
        &self,
        manager: &ActiveBufferManager,
        names: &IdMap,
        id: ScanId,
        book: &ShadowScan,
    ) -> Result<(), Broken> {
        let scan = manager.state().scan(id);
        let known = scan.map(|scan| {
            let chunk = |index| names.chunk(scan.table(), index);
            scan.needed().iter().map(chunk).collect::<IndexSet<_>>()
        });
        ensure(known.as_ref() == Some(&book.needed), Rule::EachChunkOnce, || {
            format!("{id:?} still needs {:?}, the manager says {known:?}", book.needed)
        })?;
        let scan = scan.expect("just seen");
        for chunk in book.needed.iter() {
            let places = || self.pages_of(book, chunk).map(|page| self.page(page).place);
            let available = places().all(|place| place == Place::Cached);
            let covered = places().all(|place| place != Place::Cold);
            let index = names.index(scan.table(), chunk);
            let known = index.map(|index| (scan.is_available(index), scan.is_covered(index)));
            ensure(known == Some((available, covered)), Rule::Records, || {
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
