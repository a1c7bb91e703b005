//! The files that are shared with other servers, by all their names.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

use coscan_core::{ChunkIndex, Index, PageId, PageIndex};
use coscan_ring::{Extents, FileId, RowGroup, StoreId};
use coscan_storage::table::{PageLayout, ParquetFile};

use super::ServedFile;
use crate::memory::MemoryBudget;
use crate::peers::FileName;
use crate::tables::metadata_reservation::MetadataReservation;
use crate::tables::registry;

/// A file that is to be shared.
#[derive(Debug)]
pub(crate) struct NewSharedFile {
    name: Arc<FileName>,
    pub(super) extents: Extents,
    /// The first row and the bytes of each page.
    pub(super) pages: Vec<(u64, u64)>,
    ranges: Box<[Range<u64>]>,
    by_start: Box<[u32]>,
    memory: MetadataReservation,
}

/// A file that is shared.
#[derive(Debug)]
pub(crate) struct SharedFile {
    pub(super) name: Arc<FileName>,
    registered: registry::FileId,
    first_page: PageId,
    /// The ranges of its pages in the file.
    ranges: Box<[Range<u64>]>,
    /// Its pages in the order of their first bytes.
    by_start: Box<[u32]>,
    /// The table by which it is served, if another server has asked for it.
    pub(super) served: Option<ServedFile>,
    /// Whether another server has asked for it since it was last looked at.
    pub(super) is_asked_for: bool,
    /// The memory of what is known of its pages, here and in the node.
    _memory: MetadataReservation,
}

/// All files that are shared.
#[derive(Debug, Default)]
pub(in crate::driver) struct SharedFiles {
    files: BTreeMap<FileId, SharedFile>,
    by_name: BTreeMap<Arc<FileName>, FileId>,
    by_registration: BTreeMap<registry::FileId, FileId>,
    by_first_page: BTreeMap<PageId, FileId>,
    by_identity: BTreeMap<u64, FileId>,
    /// The stores of files that are or were shared.
    stores: BTreeMap<String, StoreId>,
}

impl NewSharedFile {
    pub(super) fn name(&self) -> &FileName {
        &self.name
    }

    /// Describes an open file by the name that all servers use. Counts the memory for that. Not to be called under the
    /// lock, which this may take.
    pub(crate) fn new(memory: &Arc<MemoryBudget>, file: &ParquetFile, name: FileName) -> Self {
        let row_groups = file.metadata().row_groups().iter().map(|group| RowGroup {
            rows: u64::try_from(group.num_rows()).unwrap_or(0),
            bytes: u64::try_from(group.compressed_size()).unwrap_or(0),
        });
        let row_groups: Vec<_> = row_groups.collect();
        let pages = (0..file.page_count()).map(PageIndex::from_usize);
        let ranges: Box<[Range<u64>]> = pages.map(|page| file.page_range(page)).collect();
        let bytes = ranges.iter().map(|range| range.end - range.start);
        let pages: Vec<_> = first_rows(file).into_iter().zip(bytes).collect();
        let mut by_start: Box<[u32]> = (0..ranges.len() as u32).collect();
        by_start.sort_by_key(|&page| ranges[page as usize].start);
        let extents = Extents::cut(&row_groups);
        let lists = size_of_val(&*ranges) + size_of_val(&*by_start) + size_of_val(&*pages);
        let memory = MetadataReservation::of_held(memory, lists as u64);
        Self { name: Arc::new(name), extents, pages, ranges, by_start, memory }
    }
}

/// The first row of each page, which is that of the first chunk that needs it.
fn first_rows(file: &ParquetFile) -> Vec<u64> {
    let mut rows = vec![None; file.page_count()];
    let groups = match file.options().layout {
        PageLayout::Column => file.fields().len(),
        PageLayout::Row => 1,
    };
    let mut first_row = 0;
    for chunk in (0..file.chunk_count()).map(ChunkIndex::from_usize) {
        for page in (0..groups).flat_map(|column| file.slice(chunk, column)) {
            rows[page.as_usize()].get_or_insert(first_row);
        }
        first_row += file.chunk_rows(chunk);
    }
    rows.into_iter().map(Option::unwrap_or_default).collect()
}

impl SharedFile {
    pub(super) fn page_count(&self) -> usize {
        self.ranges.len()
    }

    /// The page of core for a page of the file.
    pub(super) fn page_id(&self, page: PageIndex) -> PageId {
        PageId(self.first_page.0 + page.0)
    }

    /// The range of a page in the file.
    pub(super) fn range(&self, page: PageIndex) -> Range<u64> {
        self.ranges[page.as_usize()].clone()
    }

    /// The page with these bytes of the file.
    pub(super) fn page_of(&self, range: &Range<u64>) -> Option<PageIndex> {
        let start = |&page: &u32| self.ranges[page as usize].start;
        let first = self.by_start.partition_point(|page| start(page) < range.start);
        let same = self.by_start[first..].iter().take_while(|page| start(page) == range.start);
        let page = same.copied().find(|&page| self.ranges[page as usize] == *range);
        page.map(PageIndex)
    }
}

impl SharedFiles {
    /// Whether a registered file, or one of this name, is shared.
    pub(super) fn knows(&self, file: registry::FileId, name: &FileName) -> bool {
        self.by_registration.contains_key(&file) || self.by_name.contains_key(name)
    }

    /// The store of a file.
    pub(super) fn store_of(&mut self, name: &FileName) -> StoreId {
        let next = StoreId(self.stores.len() as u32);
        *self.stores.entry(name.store().to_owned()).or_insert(next)
    }

    /// The address of a store.
    pub(super) fn url_of(&self, store: StoreId) -> Option<&str> {
        let mut stores = self.stores.iter();
        stores.find(|&(_, &id)| id == store).map(|(url, _)| url.as_str())
    }

    pub(super) fn insert(
        &mut self,
        id: FileId,
        registered: registry::FileId,
        first_page: PageId,
        new: NewSharedFile,
    ) {
        let NewSharedFile { name, ranges, by_start, memory, .. } = new;
        self.by_name.insert(Arc::clone(&name), id);
        self.by_registration.insert(registered, id);
        self.by_identity.insert(name.identity(), id);
        if !ranges.is_empty() {
            self.by_first_page.insert(first_page, id);
        }
        let (served, is_asked_for) = (None, false);
        let file = SharedFile {
            name,
            registered,
            first_page,
            ranges,
            by_start,
            served,
            is_asked_for,
            _memory: memory,
        };
        self.files.insert(id, file);
    }

    pub(super) fn remove(&mut self, id: FileId) {
        if let Some(file) = self.files.remove(&id) {
            self.by_name.remove(&file.name);
            self.by_registration.remove(&file.registered);
            self.by_first_page.remove(&file.first_page);
            self.by_identity.remove(&file.name.identity());
        }
    }

    /// The shared files by their ids in the registry.
    pub(super) fn registered(&self) -> impl Iterator<Item = registry::FileId> {
        self.by_registration.keys().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// The next file after one, or the first.
    pub(super) fn after(&self, id: Option<FileId>) -> Option<(FileId, &SharedFile)> {
        let after = id.map_or(Bound::Unbounded, Bound::Excluded);
        let (&id, file) = self.files.range((after, Bound::Unbounded)).next()?;
        Some((id, file))
    }

    pub(super) fn get(&self, id: FileId) -> Option<&SharedFile> {
        self.files.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: FileId) -> Option<&mut SharedFile> {
        self.files.get_mut(&id)
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (FileId, &mut SharedFile)> {
        self.files.iter_mut().map(|(&id, file)| (id, file))
    }

    pub(super) fn by_name(&self, name: &FileName) -> Option<FileId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn by_identity(&self, identity: u64) -> Option<&SharedFile> {
        self.by_identity.get(&identity).and_then(|&id| self.get(id))
    }

    pub(super) fn by_registration(&self, file: registry::FileId) -> Option<FileId> {
        self.by_registration.get(&file).copied()
    }

    /// The file of a page of core, and its page there.
    pub(super) fn place_of(&self, page: PageId) -> Option<(FileId, PageIndex)> {
        let (first, &id) = self.by_first_page.range(..=page).next_back()?;
        let index = page.0 - first.0;
        let is_inside = (index as usize) < self.files[&id].ranges.len();
        is_inside.then_some((id, PageIndex(index)))
    }
}
