//! Sharing potential: how much of what running scans want is wanted by several of them [CS11 §6.2, Figure 6.1].

use std::collections::BTreeMap;

use coscan_core::{ChunkIndex, PageId, TableId, Time};

use super::Run;
use crate::outcome::What;
use crate::workload::Query;

/// What is wanted at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Potential {
    /// When.
    pub at: Time,
    /// Bytes of pages that exactly 1, 2, 3 and 4 scans have still to be handed, and 5 or more.
    pub bytes: [u64; 5],
}

/// Who wants what, from one step of a timeline to the next.
struct Wanted<'a> {
    queries: Vec<&'a Query>,
    run: &'a Run,
    /// For each page, how many chunks of it each scan wants.
    pages: BTreeMap<PageId, BTreeMap<usize, u32>>,
    bytes: [u64; 5],
}

impl Wanted<'_> {
    fn pages_of(&self, query: usize, chunk: ChunkIndex) -> Vec<(PageId, u64)> {
        let wanting = self.queries[query];
        let layout = &self.run.prepared.workload.tables[wanting.table].layout;
        let table = TableId(u32::try_from(wanting.table).expect("fewer than 2^32 tables"));
        let with_bytes = |page| (PageId { table, page }, layout.bytes_of(page));
        wanting.pages(layout, chunk).map(with_bytes).collect()
    }

    fn chunks(&self, query: usize) -> Vec<ChunkIndex> {
        let wanting = self.queries[query];
        let layout = &self.run.prepared.workload.tables[wanting.table].layout;
        wanting.chunks(layout).iter().collect()
    }

    fn want(&mut self, query: usize, chunk: ChunkIndex) {
        for (page, bytes) in self.pages_of(query, chunk) {
            let scans = self.pages.entry(page).or_default();
            let before = scans.len();
            *scans.entry(query).or_default() += 1;
            let after = scans.len();
            self.refile(bytes, before, after);
        }
    }

    /// A scan wants a chunk no more; nothing happens if it did not want it.
    fn forget(&mut self, query: usize, chunk: ChunkIndex) {
        for (page, bytes) in self.pages_of(query, chunk) {
            let Some(scans) = self.pages.get_mut(&page) else { continue };
            let before = scans.len();
            if let Some(chunks) = scans.get_mut(&query) {
                *chunks -= 1;
                if *chunks == 0 {
                    scans.remove(&query);
                }
            }
            let after = scans.len();
            self.refile(bytes, before, after);
        }
    }

    fn refile(&mut self, bytes: u64, before: usize, after: usize) {
        let most = self.bytes.len();
        if before > 0 {
            self.bytes[before.min(most) - 1] -= bytes;
        }
        if after > 0 {
            self.bytes[after.min(most) - 1] += bytes;
        }
    }
}

impl Run {
    /// What was wanted at `samples` moments, evenly spread from the start to the end of the run. It has to have a
    /// timeline.
    #[must_use]
    pub fn sharing_potential(&self, samples: u32) -> Vec<Potential> {
        let queries = self.prepared.workload.streams.iter().flat_map(|stream| &stream.queries);
        let mut wanted =
            Wanted { queries: queries.collect(), run: self, pages: BTreeMap::new(), bytes: [0; 5] };
        // What each scan has still to be handed: one that is cancelled wants nothing more.
        let mut left: BTreeMap<usize, Vec<ChunkIndex>> = BTreeMap::new();
        let mut steps = self.outcome.timeline.iter().peekable();
        let mut potentials = Vec::with_capacity(samples as usize);
        for sample in 0..samples {
            let at = u128::from(self.outcome.total_ns) * u128::from(sample) / u128::from(samples);
            let at = Time(u64::try_from(at).expect("not after the end"));
            while let Some(step) = steps.next_if(|step| step.at <= at) {
                match step.what {
                    What::Started { query } => {
                        let chunks = wanted.chunks(query);
                        chunks.iter().for_each(|&chunk| wanted.want(query, chunk));
                        left.insert(query, chunks);
                    }
                    What::Delivered { query, chunk, .. } => {
                        wanted.forget(query, chunk);
                        left.entry(query).or_default().retain(|&other| other != chunk);
                    }
                    What::Ended { query, .. } => {
                        let chunks = left.remove(&query).unwrap_or_default();
                        chunks.into_iter().for_each(|chunk| wanted.forget(query, chunk));
                    }
                    _ => {}
                }
            }
            potentials.push(Potential { at, bytes: wanted.bytes });
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
    fn counts_bytes_by_the_number_of_scans_that_want_them() {
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
