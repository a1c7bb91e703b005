//! Sharing potential: the data that running scans still need, by the number of scans that need it
//! [CS11 §6.2, Figure 6.1].

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, PageIndex, Time};

use super::Run;
use crate::outcome::{EventKind, Outcome, QueryOutcome};
use crate::workload::{Query, Workload};

/// The number of amounts that are distinguished: needed by 1, 2, 3, 4 scans, and by 5 or more.
const LAYERS: usize = 5;

/// The sharing potential at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Potential {
    /// The time.
    pub at: Time,
    /// Bytes of pages that exactly 1, 2, 3 and 4 scans, and 5 or more, have not been handed yet.
    pub bytes: [u64; LAYERS],
}

/// The needs of scans at a moment.
struct NeedCounts<'a> {
    workload: &'a Workload,
    queries: Vec<(&'a Query, &'a QueryOutcome)>,
    /// The number of scans that need a page, by table and page.
    scans: BTreeMap<(usize, PageIndex), usize>,
    /// For each query, the number of its chunks not handed out yet that need each page.
    chunks: Vec<BTreeMap<PageIndex, usize>>,
    bytes: [u64; LAYERS],
}

impl<'a> NeedCounts<'a> {
    fn new(workload: &'a Workload, outcome: &'a Outcome) -> Self {
        let queries: Vec<_> = workload.queries().zip(&outcome.queries).collect();
        let chunks = vec![BTreeMap::new(); queries.len()];
        Self { workload, queries, scans: BTreeMap::new(), chunks, bytes: [0; LAYERS] }
    }

    fn started(&mut self, query: usize) {
        let (needs, outcome) = self.queries[query];
        let layout = &self.workload.tables[needs.table].layout;
        for chunk in outcome.needed.iter() {
            for page in needs.pages(layout, chunk) {
                *self.chunks[query].entry(page).or_default() += 1;
            }
        }
        let pages: Vec<PageIndex> = self.chunks[query].keys().copied().collect();
        pages.into_iter().for_each(|page| self.change(needs.table, page, 1));
    }

    fn delivered(&mut self, query: usize, chunk: ChunkIndex) {
        let (needs, _) = self.queries[query];
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
        let table = self.queries[query].0.table;
        for page in std::mem::take(&mut self.chunks[query]).into_keys() {
            self.change(table, page, -1);
        }
    }

    /// Changes the number of scans that need a page by one.
    fn change(&mut self, table: usize, page: PageIndex, by: isize) {
        let bytes = self.workload.tables[table].layout.bytes_of(page);
        let scans = self.scans.entry((table, page)).or_default();
        let layer = |scans: usize| scans.checked_sub(1).map(|layer| layer.min(LAYERS - 1));
        if let Some(before) = layer(*scans) {
            self.bytes[before] -= bytes;
        }
        *scans = scans.checked_add_signed(by).expect("a scan that needed the page is counted");
        if let Some(after) = layer(*scans) {
            self.bytes[after] += bytes;
        }
    }
}

impl Run {
    /// The sharing potential at `samples` moments, evenly spread from the start to the end of a run that has a timeline.
    #[must_use]
    pub fn sharing_potential(&self, samples: u32) -> Vec<Potential> {
        let mut needs = NeedCounts::new(&self.prepared.workload, &self.outcome);
        let mut steps = self.outcome.timeline.iter().peekable();
        let mut potentials = Vec::with_capacity(samples as usize);
        for sample in 0..samples {
            let at = u128::from(self.outcome.total_ns) * u128::from(sample) / u128::from(samples);
            let at = Time(u64::try_from(at).expect("not after the end"));
            while let Some(step) = steps.next_if(|step| step.at <= at) {
                match step.what {
                    EventKind::Started { query } => needs.started(query),
                    EventKind::Delivered { query, chunk, .. } => needs.delivered(query, chunk),
                    EventKind::Ended { query, .. } => needs.ended(query),
                    _ => {}
                }
            }
            potentials.push(Potential { at, bytes: needs.bytes });
        }
        potentials
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use coscan_core::PolicyKind;

    use crate::experiment::Prepared;
    use crate::simulation::Options;
    use crate::spec::Spec;

    #[test]
    fn counts_bytes_by_the_number_of_scans_that_need_them() {
        let text = r#"
            name = "potential"
            title = "a scan of all ten chunks, joined after 2.5 s by one of the last four"
            [machine]
            cores = 1
            pool = "100 %"
            loads_in_flight = 1
            disk.perfect.chunk = "1 s"
            [table.t]
            rows = 10
            chunks = 10
            size = "10 MB"
            [query.all]
            in_order = true
            cost = "0 s"
            [query.end]
            chunks = [[6, 10]]
            in_order = true
            cost = "0 s"
            [streams.first]
            queries = ["all"]
            [streams.second]
            start = "2500 ms"
            queries = ["end"]
        "#;
        let spec = Spec::parse(text).expect("the text is right");
        let prepared = Arc::new(Prepared::new(&spec.cases[0], 1).expect("no rule is broken"));
        let options = Options { timeline: true, ..Options::default() };
        let run = prepared.run(PolicyKind::Normal.build(), options).expect("no rule is broken");
        assert_eq!(run.outcome.total_ns, 10_000_000_000, "each chunk is read once");
        let potentials = run.sharing_potential(10);
        let megabytes = |second: usize| potentials[second].bytes.map(|bytes| bytes / 1_000_000);
        assert_eq!(megabytes(0), [10, 0, 0, 0, 0]);
        assert_eq!(megabytes(2), [8, 0, 0, 0, 0]);
        assert_eq!(megabytes(3), [3, 4, 0, 0, 0]);
    }
}
