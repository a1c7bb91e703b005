//! A worker that leaves, or returns its chunk: its scan gets every chunk of which nothing was taken.

use std::collections::BTreeSet;

use coscan_core::*;

const CHUNKS: u64 = 6;

/// A scan of a table of some chunks for two workers; all reads succeed at once.
struct Run {
    manager: ActiveBufferManager,
    scan: ScanId,
    /// The chunk that each worker holds, or `Some(None)` once it was told that there is no more.
    answers: [Option<Option<ChunkIndex>>; 2],
}

impl Run {
    fn new(policy: PolicyKind, order: Order) -> Self {
        let mut layout = Layout::builder(1);
        for _ in 0..CHUNKS {
            let page = layout.add_page(GroupIndex(0), 1);
            layout.add_chunk(1, vec![vec![page]]);
        }
        Self::of(&layout.build(), policy, order)
    }

    /// A run with a pool of two bytes.
    fn of(layout: &Layout, policy: PolicyKind, order: Order) -> Self {
        let config = Config { pool_bytes: 2, ..Config::default() };
        let mut manager = ActiveBufferManager::new(config, policy.build());
        let (table, _) = manager.register_layout(layout, DeviceId(0));
        let chunks = std::iter::once(ChunkIndex(0)..ChunkIndex(layout.chunk_count() as u32));
        let chunks = chunks.collect();
        let groups = vec![GroupIndex(0)];
        let spec = ScanSpec {
            table,
            groups,
            chunks,
            order,
            workers: 2,
            weight: 1,
            pages: None,
            computation: None,
        };
        let scan = manager.start_scan(Time(0), &spec).unwrap();
        Self { manager, scan, answers: [None; 2] }
    }

    fn settle(&mut self) {
        while let Some(action) = self.manager.poll_action() {
            match action {
                Action::Load { load, pages, .. } => {
                    pages.iter().for_each(|&page| self.manager.page_loaded(Time(0), load, page));
                }
                Action::Deliver { worker, chunk, .. } => {
                    self.answers[worker.as_usize()] = Some(Some(chunk));
                }
                Action::Finish { worker, .. } => self.answers[worker.as_usize()] = Some(None),
                _ => {}
            }
            self.manager.audit().unwrap();
        }
    }

    fn ask(&mut self, worker: u32) -> Option<ChunkIndex> {
        self.answers[worker as usize] = None;
        self.manager.request_chunk(Time(0), self.scan, WorkerIndex(worker)).unwrap();
        self.settle();
        self.answers[worker as usize].expect("it is answered")
    }

    fn report(&self) -> ScanCounts {
        self.manager.report(self.scan).unwrap()
    }

    fn withdraw(&mut self, worker: u32) {
        self.manager.withdraw_worker(Time(0), self.scan, WorkerIndex(worker));
        self.settle();
    }

    /// All chunks that a worker gets until there is no more.
    fn rest(&mut self, worker: u32) -> BTreeSet<ChunkIndex> {
        std::iter::from_fn(|| self.ask(worker)).collect()
    }
}

fn all() -> BTreeSet<ChunkIndex> {
    (0..CHUNKS).map(|chunk| ChunkIndex(u32::try_from(chunk).unwrap())).collect()
}

fn runs() -> impl Iterator<Item = Run> {
    let orders = [Order::Any, Order::InOrder];
    PolicyKind::ALL.into_iter().flat_map(move |policy| orders.map(|order| Run::new(policy, order)))
}

#[test]
fn a_chunk_given_back_before_its_pages_were_released_is_handed_out_again() {
    for mut run in runs() {
        let chunk = run.ask(0).unwrap();
        run.withdraw(0);
        assert_eq!(run.report().chunks_delivered, 0);
        assert!(run.manager.state().scan(run.scan).unwrap().needed().contains(chunk));
        assert_eq!(run.rest(1), all());
        assert_eq!(run.report().chunks_delivered, CHUNKS);
    }
}

#[test]
fn a_chunk_is_counted_once_however_often_it_is_given_back() {
    for mut run in runs() {
        for _ in 0..2 {
            run.ask(0).unwrap();
            run.withdraw(0);
            let ScanCounts { chunks_delivered, chunks_found, bytes_read, bytes_reused, .. } =
                run.report();
            assert_eq!((chunks_delivered, chunks_found, bytes_read, bytes_reused), (0, 0, 0, 0));
        }
        run.rest(1);
        let ScanCounts { chunks_delivered, chunks_found, bytes_read, bytes_reused, .. } =
            run.report();
        assert_eq!((chunks_delivered, bytes_read, bytes_reused), (CHUNKS, CHUNKS, 0));
        assert!(chunks_found <= chunks_delivered, "{chunks_found}");
    }
}

#[test]
fn a_page_of_a_chunk_that_was_given_back_counts_as_read_for_the_one_that_is_kept() {
    let mut layout = Layout::builder(1);
    let page = layout.add_page(GroupIndex(0), 1);
    for _ in 0..2 {
        layout.add_chunk(1, vec![vec![page]]);
    }
    let layout = layout.build();
    for policy in PolicyKind::ALL {
        let mut run = Run::of(&layout, policy, Order::Any);
        run.ask(0).unwrap();
        run.ask(1).unwrap();
        run.withdraw(0);
        assert_eq!(run.rest(1).len(), 1, "what the other gave back");
        let report = run.report();
        assert_eq!((report.bytes_read, report.bytes_reused), (1, 1), "{policy}");
    }
}

#[test]
fn a_chunk_whose_pages_were_released_is_gone_with_its_worker() {
    for mut run in runs() {
        let chunk = run.ask(0).unwrap();
        run.manager.release_chunk(Time(0), run.scan, WorkerIndex(0));
        run.withdraw(0);
        assert_eq!(run.manager.state().scan(run.scan).unwrap().busy_workers(), 0);
        let mut others = all();
        others.remove(&chunk);
        assert_eq!(run.rest(1), others);
    }
}

#[test]
fn a_worker_that_was_withdrawn_may_ask_again_and_one_that_waits_gets_nothing() {
    for mut run in runs() {
        // It waits while it is not settled.
        run.manager.request_chunk(Time(0), run.scan, WorkerIndex(0)).unwrap();
        run.withdraw(0);
        assert_eq!(run.answers[0], None);
        assert_eq!(run.rest(0), all());
        run.withdraw(0);
        assert_eq!(run.ask(0), None, "it knows already that nothing is left");
    }
}
