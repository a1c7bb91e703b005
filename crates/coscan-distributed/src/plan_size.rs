//! The size of plans that are sent.

use std::sync::Arc;

use coscan_datafusion::ScanTask;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::DistributedLeafExec;

use crate::network::MESSAGE_BYTES_MAX;
use crate::not_distributed::NotDistributed;
use crate::task_scan::TaskScan;

/// The most bytes that the files of a plan's scans may take in a message. The rest is for the operators.
const FILE_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

/// The bytes of a file, or of a range of rows, without its names.
const ENTRY_BYTES: usize = 64;

/// Checks that the files that the scans of a distributed plan name fit into a message. Each task names all of them.
///
/// # Errors
/// [`NotDistributed::TooManyFiles`] if they do not.
pub(crate) fn check_files(plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
    let mut bytes = 0;
    plan.apply(|plan| {
        if let Some(leaf) = plan.downcast_ref::<DistributedLeafExec>() {
            let tasks = leaf.variants().iter().filter_map(|task| task.downcast_ref::<TaskScan>());
            bytes += tasks.map(|scan| file_bytes(scan.task())).max().unwrap_or_default();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match bytes <= FILE_BYTES_MAX {
        true => Ok(()),
        false => Err(NotDistributed::TooManyFiles.into_error()),
    }
}

/// The bytes that the files of a task and its rows take in a message at most.
fn file_bytes(task: &ScanTask) -> usize {
    let files = &task.table.snapshot.files;
    let named = files.iter().map(|file| {
        let meta = &file.file.meta;
        let tags = [&meta.e_tag, &meta.version].into_iter().flatten().map(String::len);
        let values = file.partition_values.iter().map(ScalarValue::size);
        meta.location.as_ref().len() + tags.sum::<usize>() + values.sum::<usize>()
    });
    named.sum::<usize>() + (files.len() + task.rows.len()) * ENTRY_BYTES
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use coscan_datafusion::{SnapshotFile, TableSnapshot, TaskTable};
    use coscan_storage::table::TableFile;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::object_store::memory::InMemory;
    use datafusion::object_store::{ObjectMeta, path::Path};
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::union::UnionExec;
    use prost::Message;
    use url::Url;

    use super::*;
    use crate::wire::encode;

    /// A task that reads half of each file of a table.
    fn task(files: usize) -> ScanTask {
        let store = Arc::new(InMemory::new());
        let file = |number| SnapshotFile {
            file: TableFile {
                store: Arc::clone(&store) as _,
                store_url: Url::parse("s3://bucket").unwrap(),
                meta: ObjectMeta {
                    location: Path::from(format!("sales/day={number}/part-00000.parquet")),
                    last_modified: std::time::SystemTime::now().into(),
                    size: u64::MAX,
                    e_tag: Some("0123456789abcdef0123456789abcdef".to_owned()),
                    version: None,
                },
            },
            partition_values: vec![ScalarValue::from(format!("{number}"))],
            changes: None,
            options: None,
        };
        let files = (0..files).map(file).collect();
        let snapshot = TableSnapshot { files, ..TableSnapshot::default() };
        let rows = (0..snapshot.files.len() as u64).map(|file| file << 40..(2 * file + 1) << 39);
        let table = TaskTable {
            name: "sales".to_owned(),
            schema: Arc::new(Schema::empty()),
            snapshot: snapshot.clone(),
        };
        ScanTask {
            table: Arc::new(table),
            rows: rows.collect(),
            projection: Vec::new(),
            filters: Vec::new(),
            pushed_filters: Vec::new(),
            fetch: None,
            top_k: Vec::new(),
            partitions: 1,
        }
    }

    fn worker() -> Url {
        Url::parse("http://worker:5450").unwrap()
    }

    #[test]
    fn messages_are_no_larger_than_estimated() {
        for files in [1, 1000] {
            let task = task(files);
            let message = encode(&task, &worker(), Vec::new(), Vec::new()).unwrap();
            let (bytes, most) = (message.encoded_len(), file_bytes(&task) + 100);
            assert!(most / 3 < bytes && bytes <= most, "{bytes} of {most} bytes");
        }
    }

    #[test]
    fn the_files_of_all_scans_together_fit_into_a_message() {
        let scan = |files| {
            let task = Arc::new(TaskScan::new(task(files), worker()).unwrap());
            let original = Arc::new(EmptyExec::new(Arc::new(Schema::empty())));
            Arc::new(DistributedLeafExec::try_new(original, vec![task as _]).unwrap())
        };
        let less_than_half = FILE_BYTES_MAX * 2 / 5 / file_bytes(&task(100)) * 100;
        let scans = |count| {
            UnionExec::try_new((0..count).map(|_| scan(less_than_half) as _).collect()).unwrap()
        };
        check_files(&scans(2)).unwrap();
        let error = check_files(&scans(3)).unwrap_err();
        assert_eq!(NotDistributed::of(&error), Some(&NotDistributed::TooManyFiles));
    }
}
