//! Index selections: whether to read single pages or whole chunks [CS04 §4.2].

use crate::error::StartScanError;
use crate::ids::{ChunkIndex, GroupIndex, Index, PageIndex};
use crate::layout::Layout;
use crate::scan::ScanSpec;
use crate::set::IndexSet;

/// The pages that a scan picks, in order; `None` if it reads whole chunks. It picks where that costs less: each run of
/// neighbouring pages of a chunk is a request, which costs its bytes and `request_bytes`.
pub(super) fn picks(
    layout: &Layout,
    spec: &ScanSpec,
    groups: &IndexSet<GroupIndex>,
    chunks: &IndexSet<ChunkIndex>,
    request_bytes: u64,
) -> Result<Option<Vec<PageIndex>>, StartScanError> {
    let Some(listed) = &spec.pages else { return Ok(None) };
    let unknown = listed.iter().find(|page| page.as_usize() >= layout.page_count());
    if let Some(&page) = unknown {
        return Err(StartScanError::UnknownPage(page));
    }
    let mut picked = listed.clone();
    picked.sort_unstable();
    picked.dedup();
    let (mut picked_cost, mut whole_cost) = (0u64, 0u64);
    for chunk in chunks.iter() {
        let slices = groups.iter().flat_map(|group| layout.slice(chunk, group));
        let mut pages: Vec<_> = slices.copied().collect();
        whole_cost = whole_cost.saturating_add(cost(layout, &mut pages, request_bytes));
        pages.retain(|page| picked.binary_search(page).is_ok());
        picked_cost = picked_cost.saturating_add(cost(layout, &mut pages, request_bytes));
    }
    Ok((picked_cost < whole_cost).then_some(picked))
}

fn cost(layout: &Layout, pages: &mut [PageIndex], request_bytes: u64) -> u64 {
    pages.sort_unstable();
    let neighbours = |a: &PageIndex, b: &PageIndex| a.as_usize() + 1 == b.as_usize();
    let requests = pages.chunk_by(neighbours).count() as u64;
    let bytes: u64 = pages.iter().map(|&page| layout.bytes_of(page)).sum();
    requests.saturating_mul(request_bytes).saturating_add(bytes)
}
