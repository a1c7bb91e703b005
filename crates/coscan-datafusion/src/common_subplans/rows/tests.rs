//! Copies of a subplan have different rows here, which tells which copy was executed.
#![allow(clippy::unwrap_used)]

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

use futures::TryStreamExt;

use super::*;

const PARTITIONS: i64 = 3;
const BATCHES: i64 = 4;

/// A copy of four batches in each partition. The first digit of a value is the copy, the second the partition, the third
/// the batch.
fn copy(number: i64) -> Plan {
    let batch = |partition: i64, batch: i64| {
        let values = Int64Array::from(vec![number * 100 + partition * 10 + batch; 50]);
        RecordBatch::try_from_iter([("v", Arc::new(values) as ArrayRef)]).unwrap()
    };
    let partition = |partition| (0..BATCHES).map(|number| batch(partition, number)).collect();
    let partitions: Vec<Vec<_>> = (0..PARTITIONS).map(partition).collect();
    let schema = partitions[0][0].schema();
    MemorySourceConfig::try_new_exec(&partitions, schema, None).unwrap()
}

fn context(memory_bytes: usize) -> Arc<TaskContext> {
    let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    Arc::new(TaskContext::default().with_runtime(runtime))
}

/// The rows of a partition, which are read when they are asked for.
fn stream(
    rows: &Arc<SharedRows>,
    consumer: usize,
    partition: usize,
    copy: Plan,
    context: Arc<TaskContext>,
) -> BatchStream {
    stream::once(Arc::clone(rows).read(consumer, partition, copy, context)).try_flatten().boxed()
}

/// The first value of each batch.
async fn values(rows: BatchStream) -> Vec<i64> {
    let rows: Vec<_> = rows.try_collect().await.unwrap();
    rows.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0)).collect()
}

fn expected(copy: i64, partition: usize) -> Vec<i64> {
    (0..BATCHES).map(|batch| copy * 100 + partition as i64 * 10 + batch).collect()
}

/// Reads all partitions of all consumers of a subplan with two, in this order of consumers.
async fn read(
    rows: &Arc<SharedRows>,
    context: &Arc<TaskContext>,
    consumers: [usize; 2],
) -> Vec<i64> {
    let mut copies = Vec::new();
    for consumer in consumers {
        for partition in 0..PARTITIONS as usize {
            let input = copy(consumer as i64 + 1);
            let values =
                values(stream(rows, consumer, partition, input, Arc::clone(context))).await;
            let copy = values[0] / 100;
            assert_eq!(values, self::expected(copy, partition));
            copies.push(copy);
        }
    }
    copies
}

#[tokio::test]
async fn all_consumers_have_the_rows_of_the_first_to_be_read() {
    let (rows, context) = (SharedRows::new(), context(1 << 20));
    assert_eq!(read(&rows, &context, [0, 1]).await, [1; 6]);
    assert_eq!(read(&rows, &context, [1, 0]).await, [1; 6], "the same rows when executed again");
    drop(rows);
    assert_eq!(context.memory_pool().reserved(), 0);
}

#[tokio::test]
async fn each_consumer_has_its_own_rows_if_memory_is_short() {
    // A copy has 4800 bytes, and may have an eighth of the memory.
    for memory_bytes in [0, 500, 4000, 38_400] {
        let (rows, context) = (SharedRows::new(), context(memory_bytes));
        assert_eq!(read(&rows, &context, [0, 1]).await, [1, 1, 1, 2, 2, 2], "{memory_bytes}");
        drop(rows);
        assert_eq!(context.memory_pool().reserved(), 0);
    }
}

#[tokio::test]
async fn partitions_of_all_consumers_are_read_at_once() {
    for memory_bytes in [1000, 1 << 20] {
        let (rows, context) = (SharedRows::new(), context(memory_bytes));
        let consumers = [0, 1]
            .map(|consumer| (0..PARTITIONS as usize).map(move |partition| (consumer, partition)));
        let reads = consumers.into_iter().flatten().map(|(consumer, partition)| {
            let rows =
                stream(&rows, consumer, partition, copy(consumer as i64 + 1), Arc::clone(&context));
            async move { (consumer, partition, values(rows).await) }
        });
        for (consumer, partition, values) in futures::future::join_all(reads).await {
            let copy = if memory_bytes == 1000 { consumer as i64 + 1 } else { 1 };
            assert_eq!(
                values,
                expected(copy, partition),
                "consumer {consumer}, {memory_bytes} bytes"
            );
        }
        drop(rows);
        assert_eq!(context.memory_pool().reserved(), 0);
    }
}

#[tokio::test]
async fn a_consumer_that_is_dropped_leaves_nothing_behind() {
    let (rows, context) = (SharedRows::new(), context(1 << 20));
    let mut first = stream(&rows, 0, 0, copy(1), Arc::clone(&context));
    assert!(futures::poll!(first.next()).is_pending(), "tasks have to run first");
    drop(first);
    let second = stream(&rows, 1, 1, copy(2), Arc::clone(&context));
    assert_eq!(values(second).await, expected(2, 1), "what was not whole was given up");
    let third = stream(&rows, 0, 2, copy(1), Arc::clone(&context));
    assert_eq!(values(third).await, expected(2, 2), "and what was whole is there");
    assert!(context.memory_pool().reserved() > 0);
    drop(rows);
    assert_eq!(context.memory_pool().reserved(), 0);
}
