//! Memory of tasks that have ended.
//!
//! The engine keeps tasks in a cache, which lets go of those that have ended, with the memory of their operators, when it is
//! used next. On a worker that is idle, that would be long after.

use std::time::Duration;

use datafusion_distributed::{ExecuteTaskRequest, ProducerHead, TaskKey, Worker};
use futures::FutureExt;
use uuid::Uuid;

use super::running::RunningTasks;

/// The cache looks for ended tasks at most this often when it is used.
const CACHE_INTERVAL: Duration = Duration::from_millis(350);

/// The number of uses after which a task that has ended is no longer in the cache: it may have ended while the cache was looking.
const USES: usize = 3;

/// What the cache has let go of is freed after some of these steps, as the threads of the process take no notice of it any more.
const FREEING_STEPS: usize = 16;

/// Frees the memory of tasks soon after they have ended.
pub(super) async fn free_ended(worker: &Worker, tasks: &RunningTasks) {
    let mut changes = tasks.changes();
    while changes.changed().await.is_ok() {
        for _ in 0..USES {
            tokio::time::sleep(CACHE_INTERVAL).await;
            use_cache(worker);
            for _ in 0..FREEING_STEPS {
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
