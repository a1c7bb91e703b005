//! Layouts in a log: the pages with their column group and bytes, the chunks with their rows and slices.

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ids::{GroupIndex, Index, PageIndex};
use crate::layout::Layout;

#[derive(Serialize, Deserialize)]
struct Written {
    groups: usize,
    pages: Vec<(GroupIndex, u64)>,
    /// The rows of each chunk, and its pages for each column group.
    chunks: Vec<(u64, Vec<Vec<PageIndex>>)>,
}

pub(super) fn serialize<S: Serializer>(
    layout: &Arc<Layout>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let pages = (0..layout.page_count()).map(PageIndex::from_usize);
    let groups = (0..layout.group_count()).map(GroupIndex::from_usize);
    let chunk = |chunk| {
        let rows = layout.rows(chunk);
        let slices = groups.clone().map(|group| layout.slice(chunk, group).to_vec());
        (rows.end - rows.start, slices.collect())
    };
    let written = Written {
        groups: layout.group_count(),
        pages: pages.map(|page| (layout.group_of(page), layout.bytes_of(page))).collect(),
        chunks: layout.chunks().map(chunk).collect(),
    };
    written.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<Layout>, D::Error> {
    let written = Written::deserialize(deserializer)?;
    if let Some(fault) = written.fault() {
        return Err(D::Error::custom(fault));
    }
    let mut builder = Layout::builder(written.groups);
    for (group, bytes) in written.pages {
        builder.add_page(group, bytes);
    }
    for (rows, slices) in written.chunks {
        builder.add_chunk(rows, slices);
    }
    Ok(Arc::new(builder.build()))
}

impl Written {
    /// The first fault, if there is one. Text from outside must not reach the assertions of the builder.
    fn fault(&self) -> Option<&'static str> {
        let group_of = |page: &PageIndex| self.pages.get(page.as_usize()).map(|&(group, _)| group);
        let fits = |(group, slice): (usize, &Vec<PageIndex>)| {
            let mut sorted = slice.clone();
            sorted.sort_unstable();
            sorted.is_sorted_by(|a, b| a < b)
                && slice.iter().all(|page| group_of(page) == Some(GroupIndex::from_usize(group)))
        };
        if self.pages.iter().any(|(group, _)| group.as_usize() >= self.groups) {
            Some("a page of the layout has an unknown column group")
        } else if self.chunks.iter().any(|(rows, _)| *rows == 0) {
            Some("a chunk of the layout has no rows")
        } else if self.chunks.iter().any(|(_, slices)| slices.len() != self.groups) {
            Some("a chunk of the layout does not have one slice a column group")
        } else if !self.chunks.iter().all(|(_, slices)| slices.iter().enumerate().all(fits)) {
            Some("a slice of the layout names a page twice, or one of another column group")
        } else {
            None
        }
    }
}
