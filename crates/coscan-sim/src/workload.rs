//! Workloads: tables, and streams of queries on them. Nothing in them is random.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::{ChunkIndex, GroupIndex, IndexSet, Layout, Order, PageId, PageIndex, Time};

use crate::table::{Snapshot, Table, TableChange};

/// Tables, the streams of queries that run on them, and the pool that they share.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The tables.
    pub tables: Vec<Table>,
    /// The streams. They run at the same time.
    pub streams: Vec<Stream>,
    /// Bytes that the pool may hold at the start.
    pub pool_bytes: u64,
    /// Later limits of the pool in bytes, with the times from which they hold.
    pub pool_changes: Vec<(Time, u64)>,
    /// Changes of tables that nothing has to be read for, such as appends, with their times. Those of one time are made in
    /// this order, and before queries of that time start.
    pub table_changes: Vec<(Time, TableChange)>,
}

/// A page of one of the tables of a workload.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TablePage {
    /// The table, as a position in [`Workload::tables`].
    pub table: usize,
    /// The page of its layout.
    pub page: PageIndex,
}

/// The ids that the buffer manager gives to the pages of tables registered one after another.
#[derive(Clone, Debug)]
pub(crate) struct PageNumbers {
    /// The first page of each table.
    firsts: Vec<u32>,
}

impl PageNumbers {
    pub(crate) fn of<'a>(layouts: impl IntoIterator<Item = &'a Arc<Layout>>) -> Self {
        let mut next = 0;
        let mut first = |layout: &Arc<Layout>| {
            let pages = u32::try_from(layout.page_count()).expect("fewer than 2^32 pages");
            next += pages;
            next - pages
        };
        Self { firsts: layouts.into_iter().map(&mut first).collect() }
    }

    pub(crate) fn id(&self, table: usize, page: PageIndex) -> PageId {
        PageId(self.firsts[table] + page.0)
    }

    pub(crate) fn page(&self, id: PageId) -> TablePage {
        let table = self.firsts.partition_point(|&first| first <= id.0) - 1;
        TablePage { table, page: PageIndex(id.0 - self.firsts[table]) }
    }
}

/// Queries that run one after another, as one user sends them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    /// The time when the stream begins. Its first query starts after the think time of that query.
    pub start: Time,
    /// The queries.
    pub queries: Vec<Query>,
    /// Whether it runs only while others do. When all streams without this have ended, its queries that have not
    /// started do not run.
    pub while_others_run: bool,
}

/// A query: one scan and the work on its chunks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// Its kind in reports, such as `F-10`. Queries of one kind have one label.
    pub label: String,
    /// The table, as a position in [`Workload::tables`].
    pub table: usize,
    /// The column groups that it reads.
    pub groups: Vec<GroupIndex>,
    /// The version of the table that it sees, 0 for the first one; by default the newest when it starts, as it does while
    /// there is none of this number. A version stays until all queries that name it have ended.
    pub version: Option<usize>,
    /// The rows that it reads, as rows of the first version. Of a version with other rows it reads the same part.
    pub rows: Vec<Range<u64>>,
    /// The pages that hold the rows, in ascending order, if an index selected them. Other pages are not needed.
    pub selected: Option<Vec<PageIndex>>,
    /// Whether it needs its rows in order.
    pub order: Order,
    /// The number of workers that share the scan, at least one.
    pub workers: usize,
    /// Its weight among the running queries; by default 1.
    pub weight: u32,
    /// What it computes of each chunk. Queries of the same number on the same table take each other's results: what one of them
    /// has computed of a whole chunk, the others no longer need, nor do later ones.
    pub computation: Option<u64>,
    /// Its processor time.
    pub cost: Cost,
    /// Nanoseconds between the end of the query before it (for the first one: the start of the stream) and its start.
    pub think_ns: u64,
    /// Nanoseconds after its start at which it is cancelled if it still runs.
    pub cancel_after_ns: Option<u64>,
    /// The change of its table that it makes when it is done, if it is a checkpoint. Then it reads the chunks that it
    /// replaces, whatever `rows` are.
    pub change: Option<TableChange>,
}

/// Processor time of a query, in picoseconds so that whole numbers are exact enough.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cost {
    /// Picoseconds of one core for each row that the query reads.
    pub row_ps: u64,
    /// Picoseconds of one core for each stored byte of the pages that a chunk needs.
    pub byte_ps: u64,
}

impl Cost {
    /// Nanoseconds of one core for these numbers of rows and bytes.
    #[must_use]
    pub fn ns(self, rows: u64, bytes: u64) -> u64 {
        let ps = u128::from(self.row_ps) * u128::from(rows)
            + u128::from(self.byte_ps) * u128::from(bytes);
        u64::try_from(ps / 1_000).unwrap_or(u64::MAX)
    }
}

impl Workload {
    /// All queries, in the order of [`crate::Outcome::queries`].
    pub fn queries(&self) -> impl Iterator<Item = &Query> {
        self.streams.iter().flat_map(|stream| &stream.queries)
    }
}

impl Query {
    /// A query of one worker that reads these rows in any order, starts at once and needs no processor time.
    #[must_use]
    pub fn scan(label: &str, table: usize, groups: Vec<GroupIndex>, rows: Range<u64>) -> Self {
        Self {
            label: label.to_owned(),
            table,
            groups,
            version: None,
            rows: vec![rows],
            selected: None,
            order: Order::Any,
            workers: 1,
            weight: 1,
            computation: None,
            cost: Cost::default(),
            think_ns: 0,
            cancel_after_ns: None,
            change: None,
        }
    }

    /// The number of rows that it reads. Rows in several of its ranges count each time.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// The chunks that it needs if its table has all chunks of this layout.
    #[must_use]
    pub fn chunks(&self, layout: &Layout) -> IndexSet<ChunkIndex> {
        self.rows.iter().flat_map(|rows| layout.chunks_in(rows.clone())).collect()
    }

    /// The pages of a chunk that it needs, each once.
    pub fn pages<'a>(
        &'a self,
        layout: &'a Layout,
        chunk: ChunkIndex,
    ) -> impl Iterator<Item = PageIndex> + 'a {
        let groups: BTreeSet<GroupIndex> = self.groups.iter().copied().collect();
        let pages = groups.into_iter().flat_map(move |group| layout.slice(chunk, group)).copied();
        pages.filter(|page| {
            self.selected.as_ref().is_none_or(|selected| selected.binary_search(page).is_ok())
        })
    }

    /// All pages that it needs if its table has all chunks of this layout.
    #[must_use]
    pub fn all_pages(&self, layout: &Layout) -> IndexSet<PageIndex> {
        let mut pages = IndexSet::new();
        for chunk in self.chunks(layout).iter() {
            self.pages(layout, chunk).for_each(|page| {
                pages.insert(page);
            });
        }
        pages
    }

    /// The chunks that it needs of a version of its table, in the order of their rows, each with the number of its rows
    /// that it reads.
    #[must_use]
    pub fn needs(&self, table: &Table, version: &Snapshot) -> Vec<(ChunkIndex, u64)> {
        if let Some(change) = &self.change {
            return version.chunks_of(&change.replaced);
        }
        let (at_start, now) = (u128::from(table.rows_at_start()), u128::from(version.row_count()));
        let scaled = |rows: &Range<u64>| {
            let (start, end) = (u128::from(rows.start) * now, u128::from(rows.end) * now);
            let row = |row: u128| u64::try_from(row).unwrap_or(u64::MAX);
            row(start / at_start.max(1))..row(end.div_ceil(at_start.max(1)))
        };
        version.chunks_in(&self.rows.iter().map(scaled).collect::<Vec<_>>())
    }

    /// Nanoseconds of one core that its work on a chunk takes, of which it reads this number of rows, but whole pages.
    #[must_use]
    pub fn chunk_ns(&self, layout: &Layout, chunk: ChunkIndex, rows: u64) -> u64 {
        let bytes = self.pages(layout, chunk).map(|page| layout.bytes_of(page)).sum();
        self.cost.ns(rows, bytes)
    }
}
