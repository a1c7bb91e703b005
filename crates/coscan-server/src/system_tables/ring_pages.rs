//! `system.ring_pages`: the extents that are shared with other servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use coscan_runtime::ExtentReport;
use coscan_runtime::ring::NodeId;
use coscan_transport::{Transport, node_id};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;

use crate::system_tables::SystemTables;

/// The number of rows that are created at a time, since there may be millions.
const BATCH_ROWS: usize = 1024;

/// The table. It has no rows if this server does not share, or the user is not an administrator.
pub(super) fn table(tables: &SystemTables) -> Result<StreamingTable> {
    let rows = RingPages { schema: schema(), transport: tables.seen_transport().cloned() };
    StreamingTable::try_new(schema(), vec![Arc::new(rows)])
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("file", DataType::Utf8, false),
        Field::new("extent", DataType::Int64, false),
        Field::new("first_row", DataType::Int64, false),
        Field::new("rows", DataType::Int64, false),
        Field::new("owner", DataType::Utf8, true),
        Field::new("runner_up", DataType::Utf8, true),
        Field::new("pages", DataType::Int64, false),
        Field::new("bytes", DataType::Int64, false),
        Field::new("pages_in_pool", DataType::Int64, false),
        Field::new("bytes_in_pool", DataType::Int64, false),
        Field::new("pages_at_owner", DataType::Int64, false),
        Field::new("wanted_by", DataType::Int64, false),
    ]))
}

/// The rows, which are created as they are read.
#[derive(Debug)]
struct RingPages {
    schema: SchemaRef,
    transport: Option<Arc<Transport>>,
}

impl PartitionStream for RingPages {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut builder = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 1);
        let (batches, to) = (self.transport.clone().into_iter().flat_map(batches), builder.tx());
        // Visiting all pages takes too long for a thread that others wait for.
        builder.spawn_blocking(move || {
            for batch in batches {
                if to.blocking_send(batch).is_err() {
                    break; // MockVerifiers wants the rest.
                }
            }
            Ok(())
        });
        builder.build()
    }
}

/// A row: an extent, the URL of its file, and its number there.
type Row = (Arc<str>, usize, ExtentReport);

fn batches(transport: Arc<Transport>) -> impl Iterator<Item = Result<RecordBatch>> + Send {
    let mut rows = transport.cluster().shared_files().flat_map(|file| {
        let extents = file.extents.into_iter().enumerate();
        extents.map(move |(number, extent)| (Arc::clone(&file.url), number, extent))
    });
    std::iter::from_fn(move || {
        let rows: Vec<Row> = rows.by_ref().take(BATCH_ROWS).collect();
        // The addresses are current, since servers join and leave meanwhile.
        (!rows.is_empty()).then(|| batch(&rows, &addresses(&transport)))
    })
}

fn addresses(transport: &Transport) -> BTreeMap<NodeId, String> {
    let nodes = transport.nodes().into_iter();
    nodes.map(|node| (node_id(&node.address), node.address)).collect()
}

/// A batch of rows. `addresses` may lack servers that have just joined or left.
fn batch(rows: &[Row], addresses: &BTreeMap<NodeId, String>) -> Result<RecordBatch> {
    let urls = StringArray::from_iter_values(rows.iter().map(|(url, ..)| url));
    let numbers = |number: fn(&Row) -> u64| -> ArrayRef {
        let numbers = rows.iter().map(|row| i64::try_from(number(row)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(numbers))
    };
    let nodes = |node: fn(&ExtentReport) -> Option<NodeId>| -> ArrayRef {
        let nodes = rows.iter().map(|(.., extent)| addresses.get(&node(extent)?));
        Arc::new(nodes.collect::<StringArray>())
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(urls),
        numbers(|&(_, number, _)| number as u64),
        numbers(|(.., extent)| extent.rows.start),
        numbers(|(.., extent)| extent.rows.end - extent.rows.start),
        nodes(|extent| Some(extent.owner)),
        nodes(|extent| extent.runner_up),
        numbers(|(.., extent)| extent.pages),
        numbers(|(.., extent)| extent.bytes),
        numbers(|(.., extent)| extent.pages_in_pool),
        numbers(|(.., extent)| extent.bytes_in_pool),
        numbers(|(.., extent)| extent.pages_at_owner),
        numbers(|(.., extent)| extent.wanted_by as u64),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
