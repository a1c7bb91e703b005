//! Keeps running tasks in the engine's cache, and removes ended ones.
//!
//! By its code, the cache forgets a task that nobody uses for ten minutes. One whose rows are first wanted later, such as the probe
//! side of a join that takes long to build, could be lost; no test has shown it. The cache drops tasks that have ended, with the memory of their operators, only when it is
//! next used. On an idle worker, that is long after.

use std::time::Duration;

use datafusion_distributed::{
    ExecuteTaskRequest, MaybeEncoded, ProducerHead, SetPlanRequest, TaskKey, Worker,
};
use futures::{FutureExt, StreamExt, stream};
use http::HeaderMap;
use url::Url;
use uuid::Uuid;

use super::running_tasks::RunningTasks;

/// The interval in which running tasks are used, less than half of the time after which they are forgotten.
const KEEP_INTERVAL: Duration = Duration::from_secs(4 * 60);

/// The shortest interval between two sweeps of the cache.
const SWEEP_INTERVAL: Duration = Duration::from_millis(350);

/// How often the cache is used after a change: a task may end during a sweep.
const USES: usize = 3;

/// Epochs to advance until what the cache has dropped is freed.
const EPOCHS: usize = 16;

/// Keeps tasks while they run.
pub(super) async fn keep_alive(worker: &Worker, tasks: &RunningTasks) {
    let mut intervals = tokio::time::interval(KEEP_INTERVAL);
    loop {
        intervals.tick().await;
        for task in tasks.planned() {
            // One that has ended meanwhile would get an entry of its own.
            if tasks.is_planned(&task) {
                touch(worker, task).await;
            }
            // Other futures of this thread answer pings.
            tokio::task::yield_now().await;
        }
    }
}

/// Frees the memory of tasks soon after they have ended.
pub(super) async fn free_ended(worker: &Worker, tasks: &RunningTasks) {
    let mut changes = tasks.changes();
    while changes.changed().await.is_ok() {
        for _ in 0..USES {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            evict_ended(worker);
            for _ in 0..EPOCHS {
                crossbeam_epoch::pin().flush();
            }
        }
    }
}

/// Looks up a task that has its plan, by sending it one more.
async fn touch(worker: &Worker, task_key: TaskKey) {
    let second_plan = SetPlanRequest {
        task_key,
        task_count: 1,
        plan: MaybeEncoded::Encoded(Vec::new()),
        work_unit_feed_declarations: Vec::new(),
        target_worker_url: Url::parse("http://worker").expect("it is a URL"),
        query_start_time_ns: 0,
    };
    // It comes without the settings of a session, and a task that has a plan keeps it.
    let refused =
        worker.coordinator_channel(HeaderMap::new(), second_plan, stream::empty().boxed());
    drop(refused.await);
}

/// Looks up a task that does not exist.
fn evict_ended(worker: &Worker) {
    let no_task = ExecuteTaskRequest {
        task_key: TaskKey { query_id: Uuid::nil(), stage_id: 0, task_number: 0 },
        target_partition_start: 0,
        target_partition_end: 0,
        producer_head: ProducerHead::None,
    };
    // It would wait for the task.
    let _waits = worker.execute_task(no_task).now_or_never();
}
