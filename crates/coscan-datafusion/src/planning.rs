//! The plan of one scan: a shared one, or the engine's own where that costs less.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use log::debug;

use crate::direct;
use crate::exec::SharedScanExec;
use crate::source::{PlanSettings, ScanSource};

/// What a query asks of a table.
pub(crate) struct PlanRequest<'a> {
    /// Columns, as indexes into the table's schema; all of them if it is `None`.
    pub(crate) projection: Option<&'a [usize]>,
    /// On the table's schema, to rule chunks out. Rows that they reject are left out by an operator above, by the scan if
    /// the session pushes filters down, or, for columns of directories, by the list of files.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) limit: Option<usize>,
}

/// Filters as a scan sees them, without those that it cannot use.
pub(crate) fn physical_filters(
    session: &dyn Session,
    schema: &SchemaRef,
    filters: &[Expr],
) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    let schema = DFSchema::try_from(Arc::clone(schema))?;
    let physical = |filter: &Expr| {
        let expression = session.create_physical_expr(filter.clone(), &schema);
        expression.inspect_err(|error| debug!("{filter} does not prune: {error}")).ok()
    };
    Ok(filters.iter().filter_map(physical).collect())
}

pub(crate) async fn plan(
    session: &dyn Session,
    source: &Arc<ScanSource>,
    request: PlanRequest<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let PlanRequest { projection, filters, limit } = request;
    let columns = source.table.table().schema().fields().len();
    let projection = projection.map_or_else(|| (0..columns).collect(), <[usize]>::to_vec);
    let settings = PlanSettings::of_session(session.config());
    let scan = SharedScanExec::new(Arc::clone(source), projection, filters, settings, None)?;
    let scan = scan.with_bloom_filters().await?.with_limit(limit).in_few_partitions()?;
    match direct::plan(session, source, &scan.requirements())? {
        Some(direct) => Ok(direct),
        None => Ok(Arc::new(scan)),
    }
}
