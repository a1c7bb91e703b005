//! The audit: recomputes all counts and indexes from scratch, for tests and simulators. Slow, and independent of the code
//! that keeps them.

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::ClassKey;
use crate::ids::{ChunkIndex, GroupIndex, Index, PageId, ScanPosition, SliceId, TableId};
use crate::pages::{Page, Residency, Source};
use crate::scan::Scan;
use crate::set::IndexSet;
use crate::state::{ScanIndex, State};
use crate::table::{StarvationSets, Table};

/// A count that differs from the one kept: a bug in the buffer manager.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}: counted {counted}, kept {kept}")]
pub struct Discrepancy {
    what: String,
    counted: String,
    kept: String,
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
    what: impl FnOnce() -> String,
    counted: T,
    kept: T,
) -> Result<(), Discrepancy> {
    if counted == kept {
        return Ok(());
    }
    Err(Discrepancy { what: what(), counted: format!("{counted:?}"), kept: format!("{kept:?}") })
}

/// Recounts a state from its pages and the needs of its scans.
pub(crate) fn audit(state: &State) -> Result<(), Discrepancy> {
    let mut held_bytes = 0;
    let mut unpinned_bytes = 0;
    let (mut cached, mut unneeded) = (Vec::new(), Vec::new());
    for (id, table) in state.tables() {
        audit_table(state, id, table)?;
    }
    for (id, page) in state.pages.iter() {
        audit_page(state, id)?;
        held_bytes += if page.residency == Residency::Cold { 0 } else { page.bytes };
        if page.residency == Residency::Cached {
            unpinned_bytes += if page.pins == 0 { page.bytes } else { 0 };
            cached.push(id);
            unneeded.extend((page.needed_count == 0).then_some(id));
        }
    }
    audit_scan_index(state)?;
    same(|| "bytes held".into(), held_bytes, state.held_bytes())?;
    same(|| "bytes not in use".into(), unpinned_bytes, state.unpinned_bytes())?;
    for slice in &state.unneeded_slices {
        audit_unneeded_slice(state, slice)?;
    }
    same(|| "cached pages".into(), cached, sorted(state.cached_pages()))?;
    same(|| "unneeded pages".into(), unneeded, sorted(state.unneeded_pages()))
}

/// Checks that a slice that the caller is to be told of is decoded, and that no scan needs it.
fn audit_unneeded_slice(state: &State, slice: &SliceId) -> Result<(), Discrepancy> {
    let SliceId { table, chunk, group } = *slice;
    let is_decoded = state.table(table).decoded.contains(chunk, group);
    same(|| format!("{slice:?} is decoded"), is_decoded, true)?;
    let needs = |scan: &&Scan| {
        let reads = scan.needed.contains(chunk) && scan.groups.contains(group);
        reads && !scan.is_sparse() && scan.decodes()
    };
    let counted = state.scans_of(table).filter(needs).count();
    same(|| format!("scans that need {slice:?}"), counted, 0)?;
    same(|| format!("interest in {slice:?}"), counted, state.slice_interest(table, chunk, group))
}

/// Checks the index over the running scans.
fn audit_scan_index(state: &State) -> Result<(), Discrepancy> {
    let mut scan_index = ScanIndex::default();
    for (id, table) in state.tables() {
        let mut starvation = StarvationSets::default();
        for scan in state.scans_of(id) {
            let mut scan = Scan { indexed: None, ..scan.clone() };
            scan_index.update(&mut scan, &mut starvation);
        }
        same(|| format!("starved scans of {id:?}"), &starvation, &table.starvation)?;
    }
    same(|| "index of scans".into(), &scan_index, &state.scan_index)
}

/// The pages in ascending order, with duplicates.
fn sorted(pages: impl Iterator<Item = PageId>) -> Vec<PageId> {
    let mut pages: Vec<_> = pages.collect();
    pages.sort_unstable();
    pages
}

/// Checks the number of chunks of scans that need a page, and the slices that it is listed in.
fn audit_page(state: &State, id: PageId) -> Result<(), Discrepancy> {
    let page = state.page(id);
    let wanted = page.slices().iter().map(|slice| {
        let reads = |scan: &&Scan| scan.reads(slice.group, id) && scan.needed.contains(slice.chunk);
        state.scans_of(slice.table).filter(reads).count()
    });
    same(|| format!("{id:?} wanted"), wanted.sum::<usize>() as u32, page.needed_count)?;
    for slice in page.slices() {
        let listed = state.table(slice.table).slice(slice.chunk, slice.group).contains(&id);
        same(|| format!("{slice:?} has {id:?}"), listed, true)?;
    }
    Ok(())
}

fn audit_table(state: &State, id: TableId, table: &Table) -> Result<(), Discrepancy> {
    let mut in_classes = 0;
    for chunk in table.chunks() {
        for group in (0..table.group_count()).map(GroupIndex::from_usize) {
            let slice = SliceId { table: id, chunk, group };
            let known = |page: &&PageId| state.slices_of(**page).contains(&slice);
            let pages = table.slice(chunk, group);
            same(
                || format!("pages of {slice:?}"),
                pages.iter().filter(known).count(),
                pages.len(),
            )?;
        }
        let key = key_of(state, id, table, chunk);
        let class = table.classes().class_of(chunk);
        same(|| format!("class of {id:?}.{chunk:?}"), &key, class.key())?;
        if class.first() == chunk {
            in_classes += class.len();
            audit_class(state, id, table, chunk)?;
        }
        for scan in state.scans_of(id) {
            let needed = scan.needed.contains(chunk);
            same(
                || format!("{:?} counts in the class of {chunk:?}", scan.id),
                needed && !scan.is_sparse(),
                key.scans.contains(scan.slot),
            )?;
            let residencies = scan.pages(table, chunk).map(|page| state.page(page).residency);
            let residencies: Vec<_> = residencies.collect();
            let available = residencies.iter().all(|&residency| residency == Residency::Cached);
            let cold = residencies.contains(&Residency::Cold);
            same(
                || format!("{chunk:?} is available, cold for {:?}", scan.id),
                (needed && available, needed && cold),
                (scan.available.contains(chunk), scan.cold.contains(chunk)),
            )?;
            let nearby = needed && !scan.is_sparse() && key.is_nearby(&scan.groups);
            same(
                || format!("{chunk:?} is nearby for {:?}", scan.id),
                nearby,
                scan.nearby.contains(chunk),
            )?;
            let decoded = table.decoded.groups(chunk, &scan.groups);
            same(
                || format!("decoded of {chunk:?} for {:?}", scan.id),
                if needed && available { decoded } else { 0 },
                scan.decoded.of(chunk),
            )?;
        }
    }
    let mut sparse_needs: BTreeMap<ChunkIndex, IndexSet<ScanPosition>> = BTreeMap::new();
    for scan in state.sparse_scans(id) {
        for chunk in scan.needed.iter() {
            sparse_needs.entry(chunk).or_default().insert(scan.slot);
        }
    }
    same(|| format!("needs of sparse scans of {id:?}"), &sparse_needs, &table.sparse_needs)?;
    for group in (0..table.group_count()).map(GroupIndex::from_usize) {
        let reads = |scan: &&Scan| scan.groups.contains(group);
        let readers: IndexSet<_> = state.scans_of(id).filter(reads).map(Scan::slot).collect();
        let kept = &table.classes().readers()[group.as_usize()];
        same(|| format!("readers of {id:?}.{group:?}"), &readers, kept)?;
    }
    same(|| format!("chunks in classes of {id:?}"), table.chunk_count(), in_classes)
}

/// The key of the class of a chunk, computed from its pages and scans.
fn key_of(state: &State, id: TableId, table: &Table, chunk: ChunkIndex) -> ClassKey {
    let counted = |scan: &&Scan| scan.needed.contains(chunk) && !scan.is_sparse();
    let needing = state.scans_of(id).filter(counted);
    let groups_with = |test: fn(&Page) -> bool| -> IndexSet<GroupIndex> {
        let groups = (0..table.group_count()).map(GroupIndex::from_usize);
        groups
            .filter(|&group| {
                let mut pages = table.slice(chunk, group).iter();
                pages.any(|page| test(state.page(*page)))
            })
            .collect()
    };
    ClassKey {
        scans: needing.map(Scan::slot).collect(),
        nearby: groups_with(|page| page.residency == Residency::Cold)
            .iter()
            .filter(|&group| {
                let mut pages = table.slice(chunk, group).iter().map(|&page| state.page(page));
                pages.all(|page| {
                    page.source == Source::PeerPool || page.residency != Residency::Cold
                })
            })
            .collect(),
        cold: groups_with(|page| page.residency == Residency::Cold),
        reading: groups_with(|page| page.residency == Residency::Reading),
        cached: groups_with(|page| page.residency == Residency::Cached),
    }
}

/// Checks the list of a class, and the indexes in which policies find the class.
fn audit_class(
    state: &State,
    id: TableId,
    table: &Table,
    first: ChunkIndex,
) -> Result<(), Discrepancy> {
    let classes = table.classes();
    let class = classes.class_of(first);
    let of_class = |chunk: &ChunkIndex| classes.class_of(*chunk).index() == class.index();
    let members: BTreeSet<_> = table.chunks().filter(of_class).collect();
    same(
        || format!("chunks of the class of {id:?}.{first:?}"),
        members,
        classes.chunks(class).collect(),
    )?;
    let mut wanted = IndexSet::new();
    let scans = state.scans_at(table, &class.key().scans);
    scans.for_each(|scan| wanted.union_with(&scan.groups));
    let listed = |mut list: Box<dyn Iterator<Item = &crate::classes::Class> + '_>| {
        list.any(|other| other.index() == class.index())
    };
    same(
        || format!("the class of {id:?}.{first:?} is listed to read, in the pool"),
        (wanted.intersects(&class.key().cold), wanted.intersects(&class.key().cached)),
        (listed(Box::new(classes.to_read())), listed(Box::new(classes.in_pool()))),
    )
}
