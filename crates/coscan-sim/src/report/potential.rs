//! How much data several running scans still want [CS11 §6.2, Figure 6.1].

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, PageIndex, Time};

use crate::outcome::{Outcome, What};
use crate::workload::{Query, Workload};

use super::figures::layers::Moment;
use super::trace::seconds;

/// Names of the layers: by how many scans data is wanted.
pub(super) const LAYERS: [&str; 5] = ["by one scan", "by 2", "by 3", "by 4", "by 5 or more"];

/// Times of which the amounts are shown.
const MOMENTS: u64 = 400;

/// Who wants what at one time.
struct Wanted<'a> {
    workload: &'a Workload,
    queries: Vec<&'a Query>,
    /// How many scans want a page, by table and page.
    scans: BTreeMap<(usize, PageIndex), usize>,
    /// For each query, how many of its chunks that it has not been handed yet need a page.
    chunks: Vec<BTreeMap<PageIndex, usize>>,
    /// Bytes of the pages that so many scans want; those that nobody wants are not counted.
    bytes: [u64; LAYERS.len()],
}

/// The megabytes that one, two, … scans still want, over the time of a run whose timeline was recorded.
pub(super) fn moments(workload: &Workload, outcome: &Outcome) -> Vec<Moment> {
    let mut wanted = Wanted::new(workload);
    let mut moments = Vec::new();
    let step_ns = (outcome.total_ns / MOMENTS).max(1);
    let mut next = Time(0);
    for step in &outcome.timeline {
        while next < step.at {
            moments.push(wanted.moment(next));
            next = Time(next.0 + step_ns);
        }
        match step.what {
            What::Started { query } => wanted.started(query),
            What::Delivered { query, chunk, .. } => wanted.delivered(query, chunk),
            What::Ended { query, .. } => wanted.ended(query),
            _ => {}
        }
    }
    moments.push(wanted.moment(Time(outcome.total_ns)));
    moments
}

impl<'a> Wanted<'a> {
    fn new(workload: &'a Workload) -> Wanted<'a> {
        let queries: Vec<&Query> =
            workload.streams.iter().flat_map(|stream| &stream.queries).collect();
        let chunks = vec![BTreeMap::new(); queries.len()];
        Wanted { workload, queries, scans: BTreeMap::new(), chunks, bytes: [0; LAYERS.len()] }
    }

    fn moment(&self, at: Time) -> Moment {
        let amounts = self.bytes.iter().map(|bytes| *bytes as f64 / 1e6).collect();
        Moment { at_s: seconds(at), amounts }
    }

    fn started(&mut self, query: usize) {
        let needs = self.queries[query];
        let layout = &self.workload.tables[needs.table].layout;
        for chunk in needs.chunks(layout).iter() {
            for page in needs.pages(layout, chunk) {
                *self.chunks[query].entry(page).or_default() += 1;
            }
        }
        let pages: Vec<PageIndex> = self.chunks[query].keys().copied().collect();
        pages.into_iter().for_each(|page| self.change(needs.table, page, 1));
    }

    fn delivered(&mut self, query: usize, chunk: ChunkIndex) {
        let needs = self.queries[query];
        let layout = &self.workload.tables[needs.table].layout;
        for page in needs.pages(layout, chunk) {
            let Some(chunks) = self.chunks[query].get_mut(&page) else { continue };
            *chunks -= 1;
            if *chunks == 0 {
                self.chunks[query].remove(&page);
                self.change(needs.table, page, -1);
            }
        }
    }

    fn ended(&mut self, query: usize) {
        let table = self.queries[query].table;
        for page in std::mem::take(&mut self.chunks[query]).into_keys() {
            self.change(table, page, -1);
        }
    }

    /// One scan more or less wants a page.
    fn change(&mut self, table: usize, page: PageIndex, by: isize) {
        let bytes = self.workload.tables[table].layout.bytes_of(page);
        let scans = self.scans.entry((table, page)).or_default();
        let layer = |scans: usize| scans.checked_sub(1).map(|layer| layer.min(LAYERS.len() - 1));
        if let Some(before) = layer(*scans) {
            self.bytes[before] -= bytes;
        }
        *scans = scans.checked_add_signed(by).expect("only who wants a page stops wanting it");
        if let Some(after) = layer(*scans) {
            self.bytes[after] += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coscan_core::{GroupIndex, Layout, PolicyKind};

    use super::*;
    use crate::{Disk, Machine, Options, Stream, Table, run};

    #[test]
    fn data_is_wanted_by_as_many_scans_as_have_not_been_handed_it() {
        let mut layout = Layout::builder(1);
        for _ in 0..4 {
            let page = layout.add_page(GroupIndex(0), 1_000_000);
            layout.add_chunk(10, vec![vec![page]]);
        }
        let query = |rows| Query::scan("q", 0, vec![GroupIndex(0)], rows);
        let streams = [query(0..40), query(0..10)];
        let streams = streams.map(|query| Stream { start: Time(0), queries: vec![query] });
        let workload = Workload {
            tables: vec![Table { name: "t".to_owned(), layout: Arc::new(layout.build()) }],
            streams: streams.to_vec(),
            pool_bytes: 4_000_000,
            pool_changes: Vec::new(),
        };
        let machine = Machine::new(Disk::Perfect { ns_per_chunk: 1_000_000_000 }, 1);
        let options = Options { timeline: true, ..Options::default() };
        let outcome = run(&workload, &machine, PolicyKind::Normal.build(), options)
            .expect("no rule is broken");
        let moments = moments(&workload, &outcome);
        let at = |seconds: f64| {
            let moment = moments.iter().find(|moment| moment.at_s >= seconds).expect("a moment");
            (moment.amounts[0], moment.amounts[1])
        };
        // Both want the first chunk, one the others; after a second both have it.
        assert_eq!(at(0.5), (3.0, 1.0));
        assert_eq!(at(1.5), (3.0, 0.0));
        assert_eq!(at(2.5), (2.0, 0.0));
        assert_eq!(at(4.0), (0.0, 0.0));
    }
}
