//! Index selections: whether to read single pages or whole chunks [CS04 §4.2].

use crate::error::StartScanError;
use crate::ids::{ChunkIndex, GroupIndex, PageId};
use crate::scan::ScanSpec;
use crate::set::IndexSet;
use crate::state::State;

/// The selected pages that a scan reads, in order; `None` if it reads whole chunks. The scan reads what costs less. A
/// request for each run of neighbouring pages of a chunk costs its bytes plus `request_cost_bytes`.
pub(super) fn sparse_pages(
    state: &State,
    spec: &ScanSpec,
    groups: &IndexSet<GroupIndex>,
    chunks: &[ChunkIndex],
    request_cost_bytes: u64,
) -> Result<Option<Vec<PageId>>, StartScanError> {
    let Some(listed) = &spec.pages else { return Ok(None) };
    let is_known = |page: PageId| state.pages.contains(&(page..PageId(page.0 + 1)));
    let unknown = listed.iter().find(|&&page| !is_known(page));
    if let Some(&page) = unknown {
        return Err(StartScanError::UnknownPage(page));
    }
    let mut selected = listed.clone();
    selected.sort_unstable();
    selected.dedup();
    let (mut sparse_cost, mut whole_cost) = (0u64, 0u64);
    for &chunk in chunks {
        let mut pages = state.pages(spec.table, chunk, groups);
        whole_cost = whole_cost.saturating_add(cost(state, &mut pages, request_cost_bytes));
        pages.retain(|page| selected.binary_search(page).is_ok());
        sparse_cost = sparse_cost.saturating_add(cost(state, &mut pages, request_cost_bytes));
    }
    Ok((sparse_cost < whole_cost).then_some(selected))
}

fn cost(state: &State, pages: &mut [PageId], request_cost_bytes: u64) -> u64 {
    pages.sort_unstable();
    let neighbours = |page: &PageId, next: &PageId| page.0 + 1 == next.0;
    let requests = pages.chunk_by(neighbours).count() as u64;
    let bytes: u64 = pages.iter().map(|&page| state.bytes_of(page)).sum();
    requests.saturating_mul(request_cost_bytes).saturating_add(bytes)
}
