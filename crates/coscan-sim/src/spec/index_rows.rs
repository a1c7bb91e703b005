//! The rows that an index finds, and their pages.

use std::collections::BTreeSet;

use coscan_core::{Layout, PageIndex};

use crate::random::Random;
use crate::workload::Query;

/// The query for `index_rows` random rows of those that it reads, each on one page of each of its columns.
pub(super) fn pick(query: Query, index_rows: u64, layout: &Layout, random: &mut Random) -> Query {
    let all = query.row_count();
    let rows: BTreeSet<u64> = (0..index_rows).map(|_| row(&query, random.below(all))).collect();
    let selected: BTreeSet<PageIndex> =
        rows.iter().flat_map(|&row| pages(&query, layout, row)).collect();
    Query {
        rows: rows.into_iter().map(|row| row..row + 1).collect(),
        selected: Some(selected.into_iter().collect()),
        ..query
    }
}

/// The row at a position among those that a query reads.
fn row(query: &Query, mut position: u64) -> u64 {
    for rows in &query.rows {
        let count = rows.end - rows.start;
        if position < count {
            return rows.start + position;
        }
        position -= count;
    }
    unreachable!("the position is below the number of rows")
}

/// The pages that hold a row. Those of a slice share its rows evenly.
fn pages(query: &Query, layout: &Layout, row: u64) -> Vec<PageIndex> {
    let mut pages = Vec::new();
    for chunk in layout.chunks_in(row..row + 1) {
        let rows = layout.rows(chunk);
        for &group in &query.groups {
            let slice = layout.slice(chunk, group);
            let page = (row - rows.start) * slice.len() as u64 / (rows.end - rows.start);
            pages.extend(slice.get(page as usize));
        }
    }
    pages
}

#[cfg(test)]
mod tests {
    use coscan_core::GroupIndex;

    use super::*;

    #[test]
    fn each_row_is_on_one_page_of_each_column() {
        let mut builder = Layout::builder(2);
        for _ in 0..3 {
            let ten: Vec<_> = (0..10).map(|_| builder.add_page(GroupIndex(0), 5)).collect();
            let one = builder.add_page(GroupIndex(1), 7);
            builder.add_chunk(100, vec![ten, vec![one]]);
        }
        let layout = builder.build();
        let whole = Query::scan("point", 0, vec![GroupIndex(0), GroupIndex(1)], 100..300);
        let on = |row| pages(&whole, &layout, row).iter().map(|page| page.0).collect::<Vec<_>>();
        assert_eq!((on(0), on(109), on(110)), (vec![0, 10], vec![11, 21], vec![12, 21]));

        let query = pick(whole.clone(), 4, &layout, &mut Random::new(1));
        let found: Vec<u64> = query.rows.iter().map(|rows| rows.start).collect();
        assert!(found.len() <= 4 && found.iter().all(|row| (100..300).contains(row)), "{found:?}");
        let mut expected: Vec<_> = found.iter().flat_map(|&row| on(row)).collect();
        expected.sort_unstable();
        expected.dedup();
        let chunks = query.chunks(&layout);
        let needed: Vec<_> = chunks
            .iter()
            .flat_map(|chunk| query.pages(&layout, chunk))
            .map(|page| page.0)
            .collect();
        assert_eq!(
            {
                let mut needed = needed;
                needed.sort_unstable();
                needed
            },
            expected
        );
    }
}
