//! However the partitions of a plan are executed, one stream of each returns the table together, every row once.

use std::sync::Arc;

use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use futures::{StreamExt, TryStreamExt};

use crate::support::{
    Seeded, assert_all_frees, create, ids, ids_of, leaf, metric, numbers_table, numbers_table_of,
    partitions, plan,
};

const ROWS: i64 = 5000;

/// Asserts that these are the ids of the whole table, sorted.
fn assert_all(ids: &[i64], what: impl std::fmt::Display) {
    let twice = ids.windows(2).filter(|two| two[0] == two[1]).count();
    let count = ids.len();
    assert!(ids.iter().copied().eq(0..ROWS), "{what}: {count} rows, {twice} of them twice");
}

/// The output of a partition, executed in a task of its own.
async fn in_a_task(stream: SendableRecordBatchStream) -> Vec<RecordBatch> {
    tokio::spawn(stream.try_collect::<Vec<_>>()).await.unwrap().unwrap()
}

/// Executes all partitions at the same time, each in a task of its own.
async fn at_once(streams: Vec<SendableRecordBatchStream>) -> Vec<Vec<RecordBatch>> {
    futures::future::join_all(streams.into_iter().map(in_a_task)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_one_by_one_in_tasks_of_their_own() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT id FROM numbers").await;
    let mut batches = Vec::new();
    for partition in 0..4 {
        let stream = plan.execute(partition, context.task_ctx()).unwrap();
        let given = in_a_task(stream).await;
        // No other partition has asked for more, so this one returns its share only.
        assert!((1200..=1300).contains(&ids(&given).len()), "{}", ids(&given).len());
        batches.extend(given);
    }
    assert_all(&ids(&batches), "the partitions");
    assert_eq!((metric(&plan, "chunks_needed"), metric(&plan, "chunks_delivered")), (50, 50));
    drop(batches);
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn partitions_at_once_in_tasks_of_their_own() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    for _ in 0..20 {
        let plan = plan(&context, "SELECT id FROM numbers").await;
        let streams = (0..4).map(|partition| plan.execute(partition, context.task_ctx()).unwrap());
        let batches = at_once(streams.collect()).await.concat();
        assert_all(&ids(&batches), "the partitions");
        assert_eq!(metric(&plan, "chunks_delivered"), 50, "each chunk is read once");
    }
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_collects_at_a_time_in_one_task_and_in_two() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    for round in 0..20 {
        let plan = plan(&context, "SELECT id FROM numbers").await;
        let first = context.task_ctx();
        let second = if round % 2 == 0 { Arc::clone(&first) } else { context.task_ctx() };
        let tasks = [first, second].map(|task| tokio::spawn(collect(Arc::clone(&plan), task)));
        for batches in futures::future::join_all(tasks).await {
            assert_all(&ids(&batches.unwrap().unwrap()), format!("round {round}"));
        }
    }
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_partition_takes_from_those_that_run_but_not_from_others() {
    let (_data, _manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT id FROM numbers").await;
    let task = context.task_ctx();
    let mut slow = plan.execute(2, Arc::clone(&task)).unwrap();
    let fast = plan.execute(0, Arc::clone(&task)).unwrap();
    let first = slow.next().await.unwrap().unwrap();
    let fast = in_a_task(fast).await;
    // All of two shares except the chunks that the other partition was handed: its first chunk, and
    // one that it may have asked for.
    assert!(ids(&fast).len() >= 2400 - first.num_rows(), "{}", ids(&fast).len());
    let mut both = vec![first];
    both.extend(fast);
    both.extend(in_a_task(slow).await);
    let both = ids(&both);
    assert!(both.len() <= 2600 && both.is_sorted_by(|a, b| a < b), "nothing twice");
    let mut rest = both;
    for partition in [3, 1] {
        let stream = plan.execute(partition, context.task_ctx()).unwrap();
        rest.extend(ids(&in_a_task(stream).await));
    }
    rest.sort_unstable();
    assert_all(&rest, "the partitions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_of_a_plan_make_the_table_together() {
    let (_data, _manager, context) = numbers_table(ROWS).await;
    let mut batches = Vec::new();
    for partition in 0..4 {
        // This is like four processes, each of which executes one partition of the plan that it
        // received.
        let copy = plan(&context, "SELECT id FROM numbers").await;
        batches.extend(in_a_task(copy.execute(partition, context.task_ctx()).unwrap()).await);
    }
    assert_all(&ids(&batches), "the partitions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_dropped_half_way_gives_all_rows_when_executed_again() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let plan = plan(&context, "SELECT id FROM numbers").await;
    let task = context.task_ctx();
    let streams = (0..4).map(|partition| plan.execute(partition, Arc::clone(&task)).unwrap());
    let mut streams: Vec<_> = streams.collect();
    let mut early = streams.remove(1);
    early.next().await.unwrap().unwrap();
    drop(early);
    let mut batches = at_once(streams).await.concat();
    let others = ids(&batches).len();
    assert!(others <= 3800, "no other partition gives its share: {others}");
    let again = plan.execute(1, task).unwrap();
    batches.extend(in_a_task(again).await);
    assert_all(&ids(&batches), "the partitions");
    drop(batches);
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_for_each_stream() {
    let (_data, _manager, context) = numbers_table(ROWS).await;
    let scan = leaf(&plan(&context, "SELECT id FROM numbers").await);
    let limited = scan.with_fetch(Some(150)).unwrap();
    let task = context.task_ctx();
    for _ in 0..2 {
        for partition in 0..4 {
            let given = limited.execute(partition, Arc::clone(&task)).unwrap();
            let given = ids(&in_a_task(given).await);
            assert_eq!(given.len(), 150);
            assert!(given.is_sorted_by(|a, b| a < b), "nothing twice");
        }
    }
}

/// A plan, its first partition executed but not polled, and its second partition, which was handed a chunk and has not
/// returned any of it.
async fn second_holds_a_chunk(
    context: &SessionContext,
    manager: &BufferManager,
) -> (Arc<dyn ExecutionPlan>, SendableRecordBatchStream, SendableRecordBatchStream) {
    loop {
        manager.evict_unneeded();
        let plan = plan(context, "SELECT id FROM numbers").await;
        let task = context.task_ctx();
        let first = plan.execute(0, Arc::clone(&task)).unwrap();
        let mut second = plan.execute(1, task).unwrap();
        // Sometimes the chunk is read so soon that it is returned at once.
        if futures::poll!(second.next()).is_pending() {
            while manager.report().chunks_in_use == 0 {
                tokio::task::yield_now().await;
            }
            return (plan, first, second);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_given_back_after_its_partition_ended_is_not_lost() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let task = context.task_ctx();
    let (plan, mut all) = loop {
        let (plan, first, second) = second_holds_a_chunk(&context, &manager).await;
        let all = ids(&in_a_task(first).await);
        drop(second);
        // Otherwise a chunk of its own share was read first.
        if (0..1200).any(|id| all.binary_search(&id).is_err()) {
            break (plan, all);
        }
    };
    for partition in [1, 2, 3] {
        let stream = plan.execute(partition, Arc::clone(&task)).unwrap();
        all.extend(ids(&in_a_task(stream).await));
    }
    all.sort_unstable();
    assert_all(&all, "the partitions");
    drop(plan);
    assert_all_frees(&manager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chunk_given_back_after_owners_are_fixed_stays_with_its_partition() {
    let (_data, manager, context) = numbers_table(ROWS).await;
    let (plan, mut first, second) = second_holds_a_chunk(&context, &manager).await;
    let task = context.task_ctx();
    let mut given = ids_of(&first.next().await.unwrap().unwrap());
    // The partition is executed again, so chunks keep their owners from now on.
    let again = plan.execute(0, Arc::clone(&task)).unwrap();
    drop(second);
    given.extend(ids(&in_a_task(first).await));
    given.sort_unstable();
    assert_eq!(ids(&in_a_task(again).await), given, "both streams of the first partition");
    for partition in [1, 2, 3] {
        let stream = plan.execute(partition, Arc::clone(&task)).unwrap();
        given.extend(ids(&in_a_task(stream).await));
    }
    given.sort_unstable();
    assert_all(&given, "the partitions");
    drop(plan);
    assert_all_frees(&manager).await;
}

/// Executes a plan in one way: streams of its partitions are made, polled and dropped in random order, by several
/// threads. Returns the output of the streams that reached their ends, by partition.
async fn execute_somehow(
    plan: &Arc<dyn ExecutionPlan>,
    context: &SessionContext,
    seed: u64,
) -> Vec<Vec<Vec<i64>>> {
    let mut random = Seeded::new(seed);
    let tasks: Vec<Arc<TaskContext>> = (0..2).map(|_| context.task_ctx()).collect();
    let count = partitions(plan);
    let mut complete = vec![Vec::new(); count];
    let mut open: Vec<(usize, SendableRecordBatchStream, Vec<i64>)> = Vec::new();
    let mut running = Vec::new();
    for _ in 0..40 {
        match random.below(8) {
            0..=2 => {
                let partition = random.below(count as u64) as usize;
                let task = match random.below(3) {
                    2 => context.task_ctx(),
                    known => Arc::clone(&tasks[known as usize]),
                };
                open.push((partition, plan.execute(partition, task).unwrap(), Vec::new()));
            }
            3 | 4 if !open.is_empty() => {
                let position = random.below(open.len() as u64) as usize;
                let (partition, mut stream, mut given) = open.swap_remove(position);
                match stream.try_next().await.unwrap() {
                    Some(batch) => {
                        given.extend(ids_of(&batch));
                        open.push((partition, stream, given));
                    }
                    None => complete[partition].push(given),
                }
            }
            5 if !open.is_empty() => {
                let position = random.below(open.len() as u64) as usize;
                drop(open.swap_remove(position));
            }
            6 | 7 if !open.is_empty() => {
                let position = random.below(open.len() as u64) as usize;
                running.push(to_the_end(open.swap_remove(position)));
            }
            _ => {}
        }
    }
    running.extend(open.into_iter().map(to_the_end));
    // Executes the partitions that were not executed yet.
    for partition in 0..count {
        let stream = plan.execute(partition, context.task_ctx()).unwrap();
        running.push(to_the_end((partition, stream, Vec::new())));
    }
    for (partition, given) in futures::future::try_join_all(running).await.unwrap() {
        complete[partition].push(given);
    }
    complete
}

fn to_the_end(
    (partition, mut stream, mut given): (usize, SendableRecordBatchStream, Vec<i64>),
) -> tokio::task::JoinHandle<(usize, Vec<i64>)> {
    tokio::spawn(async move {
        while let Some(batch) = stream.try_next().await.unwrap() {
            given.extend(ids_of(&batch));
        }
        (partition, given)
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executions_and_drops_in_random_order() {
    for policy in PolicyKind::ALL {
        // Room for about five chunks: pages read for other scans are evicted too.
        let options = coscan_runtime::Options::with_pool_bytes(16 << 10, 64 << 20).policy(policy);
        let manager = BufferManager::new(options).unwrap();
        let (_data, manager, context) = numbers_table_of(manager, ROWS).await;
        for seed in 0..12 {
            let plan = match seed % 2 {
                0 => plan(&context, "SELECT id, text FROM numbers").await,
                // This policy reads the best chunks of a top-k first, and nothing reports the
                // chunks that become unneeded.
                _ => {
                    leaf(&plan(&context, "SELECT id, text FROM numbers ORDER BY id LIMIT 1").await)
                }
            };
            let mut complete = execute_somehow(&plan, &context, seed).await;
            for (partition, streams) in complete.iter_mut().enumerate() {
                streams.iter_mut().for_each(|given| given.sort_unstable());
                let same = streams.windows(2).all(|two| two[0] == two[1]);
                assert!(same, "{policy}, seed {seed}: streams of {partition} differ");
            }
            let mut all: Vec<_> = complete.iter().flat_map(|streams| streams[0].clone()).collect();
            all.sort_unstable();
            assert_all(&all, format!("{policy}, seed {seed}"));
        }
        assert_all_frees(&manager).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_join_that_prunes_its_probe_side_executed_in_any_way() {
    let (data, manager, context) = numbers_table(ROWS).await;
    let few = data.path().join("few");
    std::fs::create_dir(&few).unwrap();
    crate::support::write(&few.join("few.parquet"), &crate::support::numbers(1950..2750), 100);
    create(&context, "few", &few).await;
    let sql = "SELECT numbers.id FROM few JOIN numbers ON few.id = numbers.id";
    let expected: Vec<i64> = (1950..2750).collect();
    let mut pruned = 0;
    for seed in 0..30u64 {
        let plan = plan(&context, sql).await;
        let task = context.task_ctx();
        let task = || if seed % 2 == 0 { Arc::clone(&task) } else { context.task_ctx() };
        let count = partitions(&plan);
        let order = (0..count).map(|place| (place + seed as usize) % count);
        let streams = order.map(|partition| plan.execute(partition, task()).unwrap());
        let batches = at_once(streams.collect()).await;
        assert_eq!(ids(&batches.concat()), expected, "seed {seed}");
        let mut nodes = vec![plan];
        while let Some(node) = nodes.pop() {
            if node.name() == "SharedScanExec" {
                pruned += metric(&node, "chunks_pruned_dynamic_filter");
            }
            nodes.extend(node.children().into_iter().cloned());
        }
    }
    assert!(pruned > 0, "the keys of the small side rule chunks out");
    assert_all_frees(&manager).await;
}
