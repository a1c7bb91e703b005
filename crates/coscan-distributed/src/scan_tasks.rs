//! Divides the scans of a plan into tasks, and sends each task to the owner of its row groups.

use std::sync::Arc;

use coscan_datafusion::SharedScanExec;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedLeafExec, RouteTasksEvent,
    RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
};
use url::Url;

use crate::not_distributed::NotDistributed;
use crate::options::{options_of, workers_of};
use crate::ownership::owners;
use crate::task_scan::TaskScan;

/// The number of tasks that a scan should have.
pub(crate) fn desired_tasks(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    let scan = event.plan.downcast_ref::<SharedScanExec>()?;
    // Operators above may need all rows of a scan of one partition in one place.
    if event.plan.output_partitioning().partition_count() == 1 {
        return Some(Ok(DesiredTaskCountEventResponse::maximum(1)));
    }
    let workers = workers_of(event.session_config).0.len();
    let options = options_of(event.session_config);
    let bytes = scan.chunks_to_divide().map(|chunks| chunks.iter().map(|chunk| chunk.bytes).sum());
    let tasks = match bytes {
        Ok(bytes) if options.divided_bytes_min <= bytes => workers,
        _ => 1,
    };
    Some(Ok(DesiredTaskCountEventResponse::desired(tasks)))
}

/// Divides a scan into tasks, each with the row groups that its worker owns.
pub(crate) fn divide(
    event: ScaleUpLeafNodeEvent<'_>,
) -> Option<Result<ScaleUpLeafNodeEventResponse>> {
    let scan = event.plan.downcast_ref::<SharedScanExec>()?;
    let workers = &workers_of(event.session_config).0;
    let partitions_max = event.session_config.target_partitions();
    let divided = divided(event.plan, scan, workers, event.task_count, partitions_max);
    Some(divided.map(ScaleUpLeafNodeEventResponse::new))
}

fn divided(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &SharedScanExec,
    workers: &[Url],
    task_count: usize,
    partitions_max: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let chunks = scan.chunks_to_divide();
    let chunks = chunks.map_err(|reason| NotDistributed::Scan(reason).into_error())?;
    // A stage of fewer tasks is on the owner of the first chunk and the workers after it, by address.
    let all = owners(&chunks, workers);
    let (owners, places) = match task_count == workers.len() {
        true => (all, (0..workers.len()).collect()),
        false => {
            let first = all.first().copied().unwrap_or_default();
            let places: Vec<_> =
                (0..task_count).map(|task| (first + task) % workers.len()).collect();
            let nearby: Vec<_> = places.iter().map(|&place| workers[place].clone()).collect();
            (owners(&chunks, &nearby), places)
        }
    };
    let mut counts = vec![0; task_count];
    owners.iter().for_each(|&owner| counts[owner] += 1);
    let partitions = counts.into_iter().max().unwrap_or_default().min(partitions_max).max(1);
    let tasks = scan.divide(&owners, task_count, partitions)?;
    let variants = tasks.into_iter().zip(places).map(|(task, place): (_, usize)| {
        Ok(Arc::new(TaskScan::new(task, workers[place].clone())?) as Arc<dyn ExecutionPlan>)
    });
    let variants = variants.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(DistributedLeafExec::try_new(Arc::clone(plan), variants)?))
}

/// Sends each task to the owner of the row groups of the stage's first scan. Stages without scans are left to the engine.
pub(crate) fn route_to_owners(
    event: RouteTasksEvent<'_>,
) -> Option<Result<RouteTasksEventResponse>> {
    let mut owners = None;
    let visited = event.plan.apply(|plan| {
        let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let owner =
            |task: &Arc<dyn ExecutionPlan>| Some(task.downcast_ref::<TaskScan>()?.owner().clone());
        owners = leaf.variants().iter().map(owner).collect::<Option<Vec<_>>>();
        Ok(TreeNodeRecursion::Stop)
    });
    if let Err(error) = visited {
        return Some(Err(error));
    }
    let owners = owners.filter(|owners| owners.len() == event.task_count)?;
    Some(Ok(RouteTasksEventResponse::new(owners)))
}
