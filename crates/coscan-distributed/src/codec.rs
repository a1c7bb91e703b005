//! Encodes and decodes the scans of tasks within the plans that the engine sends.

use std::sync::Arc;

use coscan_datafusion::CoscanOptions;
use coscan_storage::stores::Prefixes;
use datafusion::common::{exec_datafusion_err, exec_err, not_impl_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf::PhysicalExprNode;
use prost::Message;

use crate::task_scan::TaskScan;
use crate::wire::{self, TaskScanMessage};

/// The codec of [`TaskScan`]. Decoding reads nothing.
#[derive(Debug)]
pub(crate) struct TaskScanCodec;

impl PhysicalExtensionCodec for TaskScanCodec {
    fn try_decode(
        &self,
        buffer: &[u8],
        _: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let message = TaskScanMessage::decode(buffer)
            .map_err(|error| exec_datafusion_err!("a scan of a task cannot be decoded: {error}"))?;
        let coscan = CoscanOptions::of(context.session_config())
            .ok_or_else(|| exec_datafusion_err!("this worker has no coscan in its session"))?;
        let schema = message.table_schema()?;
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        let decode = |filters: &[PhysicalExprNode]| {
            let filters = filters.iter();
            let filters =
                filters.map(|filter| converter.proto_to_physical_expr(filter, &schema, &decoding));
            filters.collect::<Result<Vec<_>>>()
        };
        let (filters, pushed) = (decode(&message.filters)?, decode(&message.pushed_filters)?);
        let (task, owner) = message.to_task(&coscan, filters, pushed)?;
        let prefixes = context.session_config().get_extension::<Prefixes>().unwrap_or_default();
        let files = task.table.snapshot.files.iter().map(|file| file.file.name());
        if let Some(file) = files.into_iter().find(|file| !prefixes.contain(file)) {
            return exec_err!(
                "this worker may not read {file}: add its directory or store to workers.stores of the worker"
            );
        }
        Ok(Arc::new(TaskScan::new(task, owner)?))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(scan) = node.downcast_ref::<TaskScan>() else {
            return not_impl_err!("{} cannot be sent to a worker", node.name());
        };
        let encode = |filters: &[Arc<dyn PhysicalExpr>]| {
            let filters = filters.iter();
            let filters = filters.map(|filter| converter.physical_expr_to_proto(filter, self));
            filters.collect::<Result<Vec<_>>>()
        };
        let (filters, pushed) =
            (encode(&scan.task().filters)?, encode(&scan.task().pushed_filters)?);
        let message = wire::encode(scan.task(), scan.owner(), filters, pushed)?;
        message.encode(buffer).map_err(|error| exec_datafusion_err!("{error}"))
    }
}
