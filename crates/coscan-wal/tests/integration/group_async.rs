//! Waiting for commits without a thread for each.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use coscan_wal::*;

use super::gate::{Gated, gated};
use super::support::open;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn poll(future: &mut Commit) -> Poll<Result<(), LogError>> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn one_job_writes_for_all_who_await() {
    let Gated { disk, log, syncs: gate } = gated();
    let jobs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&jobs);
    let log = GroupCommit::with_executor(log, move |job| {
        counted.fetch_add(1, Ordering::SeqCst);
        drop(thread::spawn(job));
    });
    let syncs = disk.operations(Some(Operation::Sync));
    let mut first = log.committed(log.submit("first").unwrap());
    assert!(poll(&mut first).is_pending());
    gate.begun();
    let mut later: Vec<_> =
        (0..10_u8).map(|record| log.committed(log.submit([record]).unwrap())).collect();
    assert!(later.iter_mut().all(|commit| poll(commit).is_pending()));
    gate.end();
    block_on(first).unwrap();
    gate.begun();
    gate.end();
    for commit in later {
        block_on(commit).unwrap();
    }
    assert_eq!(jobs.load(Ordering::SeqCst), 1);
    assert_eq!(disk.operations(Some(Operation::Sync)), syncs + 2);
}

#[test]
fn threads_and_tasks_wait_for_the_same_log() {
    for seed in 0..30 {
        let disk = SimulatedDisk::new(seed);
        let (log, _) = open(&disk, 1 << 14).unwrap();
        let log = GroupCommit::with_executor(log, |job| drop(thread::spawn(job)));
        if seed % 2 == 1 {
            disk.fail(Some(Operation::Sync), seed);
        }
        let acknowledged = AtomicUsize::new(0);
        thread::scope(|scope| {
            for thread in 0..6 {
                let (log, acknowledged) = (&log, &acknowledged);
                scope.spawn(move || {
                    for _ in 0..40 {
                        let Ok(lsn) = log.submit("record") else { break };
                        let outcome = if thread % 2 == 0 {
                            log.wait(lsn)
                        } else {
                            block_on(log.committed(lsn))
                        };
                        let Ok(()) = outcome else { break };
                        acknowledged.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let acknowledged = acknowledged.into_inner();
        let (_, recovery) = open(&disk.crash(seed), 1 << 14).unwrap();
        assert!(recovery.last().0 >= acknowledged as u64);
        assert!(acknowledged == 240 || seed % 2 == 1);
    }
}

#[test]
fn a_log_without_an_executor_writes_when_it_is_polled() {
    let disk = SimulatedDisk::new(0);
    let log = GroupCommit::new(open(&disk, 1 << 14).unwrap().0);
    let lsn = log.submit("a").unwrap();
    block_on(log.committed(lsn)).unwrap();
    assert_eq!(log.durable(), lsn);
    assert!(matches!(block_on(log.committed(Lsn(9))), Err(LogError::NotSubmitted { .. })));
}

#[test]
fn a_failure_wakes_those_who_await() {
    let disk = SimulatedDisk::new(0);
    let (log, _) = open(&disk, 1 << 14).unwrap();
    let log = GroupCommit::with_executor(log, |job| drop(thread::spawn(job)));
    disk.fail(Some(Operation::Sync), 0);
    let commits: Vec<_> = (0..5_u8).map(|it| log.committed(log.submit([it]).unwrap())).collect();
    for commit in commits {
        assert!(matches!(block_on(commit), Err(LogError::Poisoned { .. })));
    }
}

#[test]
fn a_dropped_future_and_a_dropped_job_hold_up_nobody() {
    let disk = SimulatedDisk::new(0);
    let (log, _) = open(&disk, 1 << 14).unwrap();
    let (jobs, received) = channel::<Job>();
    let log = GroupCommit::with_executor(log, move |job| jobs.send(job).unwrap());
    let lsn = log.submit("a").unwrap();
    let mut dropped = log.committed(lsn);
    assert!(poll(&mut dropped).is_pending());
    drop(dropped);
    (received.recv().unwrap())();
    assert_eq!(log.durable(), Lsn(0), "nobody waits, so the job has nothing to do");
    let mut commit = log.committed(lsn);
    assert!(poll(&mut commit).is_pending());
    drop(received.recv().unwrap());
    assert!(poll(&mut commit).is_pending());
    (received.recv().unwrap())();
    assert!(matches!(poll(&mut commit), Poll::Ready(Ok(()))));
    assert!(received.try_recv().is_err(), "one job at a time");
}
