//! Takes pictures for all watchers while there are any.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::{BufferManager, Events};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::sample::{LoadRow, Sample};
use super::sample_difference::WatcherState;
use super::scheduler_snapshot::{SchedulerSnapshot, load_row};
use crate::sql::SqlService;

/// The minimum time between two pictures.
const INTERVAL: Duration = Duration::from_millis(100);
/// At most one part in this many of the time is spent on pictures. Large tables are sampled less often.
const SHARE_MAX: u32 = 20;
/// The number of events that are kept between two pictures.
const EVENTS_MAX: usize = 8192;
/// The maximum number of loads of a picture.
const LOADS_MAX: usize = 2048;

/// Samples a manager regularly while anyone watches.
#[derive(Debug)]
pub struct Feed {
    /// `None` once it has ended.
    pictures: watch::Sender<Option<Arc<SchedulerSnapshot>>>,
    /// Notified when someone starts to watch.
    watched: Arc<Notify>,
}

impl Feed {
    /// Starts a feed of a manager. It ends when it is dropped.
    ///
    /// # Panics
    /// If there is no tokio runtime here.
    #[must_use]
    pub fn start(manager: BufferManager) -> Arc<Self> {
        let looked = manager.clone();
        Self::start_with(manager, move || SchedulerSnapshot::take(&looked))
    }

    /// Does the same as [`start`](Self::start), with the users and SQL of scans, the servers that share, and workers.
    ///
    /// # Panics
    /// If there is no tokio runtime here.
    #[must_use]
    pub fn of_service(service: Arc<SqlService>) -> Arc<Self> {
        Self::start_with(service.manager().clone(), move || {
            let mut picture = SchedulerSnapshot::take(service.manager());
            picture.add_queries(service.queries());
            if let Some(transport) = service.transport() {
                picture.add_servers(transport);
            }
            picture.add_workers(&service.known_workers());
            picture
        })
    }

    /// Starts a feed of the snapshots that `look` returns.
    fn start_with(
        manager: BufferManager,
        look: impl Fn() -> SchedulerSnapshot + Clone + Send + 'static,
    ) -> Arc<Self> {
        let watched = Arc::new(Notify::new());
        let feed = Arc::new(Self {
            pictures: watch::Sender::new(Some(Arc::default())),
            watched: Arc::clone(&watched),
        });
        let weak = Arc::downgrade(&feed);
        tokio::spawn(async move {
            loop {
                watched.notified().await;
                let mut sampler = Sampler::new(&manager);
                loop {
                    let Some(feed) = weak.upgrade() else { return };
                    if feed.pictures.is_closed() {
                        break;
                    }
                    drop(feed);
                    let started = Instant::now();
                    let Ok(picture) = tokio::task::spawn_blocking(look.clone()).await else {
                        // After a panic, watchers must not wait forever.
                        if let Some(feed) = weak.upgrade() {
                            feed.end();
                        }
                        return;
                    };
                    let picture = sampler.complete(picture);
                    let Some(feed) = weak.upgrade() else { return };
                    feed.pictures.send_if_modified(|last| {
                        last.as_mut().map(|last| *last = Arc::new(picture)).is_some()
                    });
                    drop(feed);
                    tokio::time::sleep(INTERVAL.max(started.elapsed() * SHARE_MAX)).await;
                }
            }
        });
        feed
    }

    /// Ends the feed for all watchers, so that a server can stop.
    pub fn end(&self) {
        self.pictures.send_replace(None);
    }

    /// Creates a watcher that starts now.
    #[must_use]
    pub fn watch(&self) -> Watcher {
        let pictures = self.pictures.subscribe();
        self.watched.notify_one();
        Watcher { pictures, watcher: WatcherState::default() }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.watched.notify_one();
    }
}

/// A subscriber of a feed.
#[derive(Debug)]
pub struct Watcher {
    pictures: watch::Receiver<Option<Arc<SchedulerSnapshot>>>,
    watcher: WatcherState,
}

impl Watcher {
    /// The next sample, with the changes since the previous one, or `None` once the feed has ended or is dropped.
    pub async fn next(&mut self) -> Option<Sample> {
        if self.pictures.borrow().is_some() {
            self.pictures.changed().await.ok()?;
        }
        let picture = self.pictures.borrow_and_update().clone()?;
        Some(self.watcher.sample(&picture))
    }
}

/// Adds the latest loads to each picture.
struct Sampler {
    events: Events,
    loads: VecDeque<LoadRow>,
    loads_before: u64,
}

impl Sampler {
    fn new(manager: &BufferManager) -> Self {
        let events = manager.subscribe(EVENTS_MAX);
        Self { events, loads: VecDeque::new(), loads_before: 0 }
    }

    fn complete(&mut self, mut picture: SchedulerSnapshot) -> SchedulerSnapshot {
        while let Some(event) = self.events.try_next() {
            self.loads.extend(load_row(&event));
        }
        while self.loads.len() > LOADS_MAX {
            self.loads.pop_front();
            self.loads_before += 1;
        }
        picture.loads = self.loads.iter().copied().collect();
        picture.loads_before = self.loads_before;
        picture
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};

    use coscan_runtime::Options;

    use super::*;

    #[tokio::test]
    async fn watchers_do_not_wait_for_ever_after_a_panic() {
        let manager = BufferManager::new(Options::with_memory_bytes(64 << 20)).unwrap();
        let panics = Arc::new(AtomicBool::new(false));
        let look = {
            let (manager, panics) = (manager.clone(), Arc::clone(&panics));
            move || {
                assert!(!panics.load(Ordering::Relaxed), "this panic is meant");
                SchedulerSnapshot::take(&manager)
            }
        };
        let feed = Feed::start_with(manager, look);
        let mut watcher = feed.watch();
        assert!(watcher.next().await.is_some());
        panics.store(true, Ordering::Relaxed);
        let ends = async { while watcher.next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(60), ends).await.unwrap();
        assert!(feed.watch().next().await.is_none(), "nor do those who come later");
    }
}
