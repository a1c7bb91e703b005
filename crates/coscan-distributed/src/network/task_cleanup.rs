//! Frees the memory of tasks that have ended.
//!
//! The engine keeps tasks in a cache, which drops ended ones, with the memory of their operators, only when it is next used.
//! On an idle worker, that is long after.

use std::time::Duration;

use datafusion_distributed::{ExecuteTaskRequest, ProducerHead, TaskKey, Worker};
use futures::FutureExt;
use uuid::Uuid;

use super::running_tasks::RunningTasks;

/// The shortest interval between two sweeps of the cache.
const CACHE_INTERVAL: Duration = Duration::from_millis(350);

/// How often the cache is used after a change: a task may end during a sweep.
const USES: usize = 3;

/// Epochs to advance until what the cache has dropped is freed.
const EPOCHS: usize = 16;

/// Frees the memory of tasks soon after they have ended.
pub(super) async fn free_ended(worker: &Worker, tasks: &RunningTasks) {
    let mut changes = tasks.changes();
    while changes.changed().await.is_ok() {
        for _ in 0..USES {
            tokio::time::sleep(CACHE_INTERVAL).await;
            use_cache(worker);
            for _ in 0..EPOCHS {
                crossbeam_epoch::pin().flush();
            }
        }
    }
}

/// Looks up a task that does not exist.
fn use_cache(worker: &Worker) {
    let no_task = ExecuteTaskRequest {
        task_key: TaskKey { query_id: Uuid::nil(), stage_id: 0, task_number: 0 },
        target_partition_start: 0,
        target_partition_end: 0,
        producer_head: ProducerHead::None,
    };
    // It would wait for the task.
    let _waits = worker.execute_task(no_task).now_or_never();
}
