//! The plan of one scan. It is a shared scan, or the engine's own where that costs less or the session shares nothing.

use std::sync::Arc;

use coscan_runtime::ScanBytes;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
#[cfg(doc)]
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, not_impl_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use log::debug;

use crate::distributed::planning::is_for_workers;
use crate::execution::exec::SharedScanExec;
use crate::planning::replica_choice::CopyChoice;
use crate::planning::unshared;
use crate::settings::NotShared;
use crate::tables::source::{PlanSettings, ScanSource};

/// The parts of a query that are pushed down to a table.
pub(crate) struct Pushdown<'a> {
    /// The columns as indexes into the table's schema. `None` selects all columns.
    pub(crate) projection: Option<&'a [usize]>,
    /// The filters on the table's schema, which rule chunks out. Rows that they reject are removed by an operator
    /// above, by the scan if the session pushes filters down, or, for columns of directories, by the list of files.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The maximum number of rows that the query needs.
    pub(crate) limit: Option<usize>,
}

impl<'a> Pushdown<'a> {
    /// Converts the arguments of [`TableProvider::scan`]. Filters that a scan cannot use are left out.
    pub(crate) fn of(
        session: &dyn Session,
        schema: &SchemaRef,
        projection: Option<&'a [usize]>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Self> {
        let schema = DFSchema::try_from(Arc::clone(schema))?;
        let physical = |filter: &Expr| {
            let expression = session.create_physical_expr(filter.clone(), &schema);
            expression.inspect_err(|error| debug!("{filter} does not prune: {error}")).ok()
        };
        let filters = filters.iter().filter_map(physical).collect();
        Ok(Self { projection, filters, limit })
    }
}

/// Plans a scan of a table, or of one of its replicas.
pub(crate) async fn plan(
    session: &dyn Session,
    table: &Arc<ScanSource>,
    replicas: &[Arc<ScanSource>],
    pushdown: Pushdown<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Pushdown { projection, filters, limit } = pushdown;
    let columns = table.table.table().schema().fields().len();
    let projection = projection.map_or_else(|| (0..columns).collect(), <[usize]>::to_vec);
    let settings = PlanSettings::of_session(session.config());
    let scan = SharedScanExec::new(Arc::clone(table), projection, filters, settings, None)?;
    let mut scan = scan.with_bloom_filters().await?;
    // The first rows are the same each time, which are those of the table itself.
    let is_for_workers = is_for_workers(session.config());
    if limit.is_none() && !replicas.is_empty() && !is_for_workers {
        scan = of_cheapest_copy(session, scan, replicas).await?;
    }
    let scan = scan.with_limit(limit).in_few_partitions()?;
    let source = scan.source();
    let direct = match NotShared::of(session.config()) {
        None if is_for_workers => None,
        None => unshared::plan_if_cheaper(session, source, &scan.requirements())?,
        Some(reason) => unshared::plan_direct(session, source, &scan.requirements(), reason)?,
    };
    match (direct, NotShared::of(session.config())) {
        (Some(direct), _) => Ok(direct),
        (None, Some(NotShared::Function(name))) if !scan.needed_chunks().is_empty() => {
            not_impl_err!(
                "{name} needs a scan of DataFusion, which cannot read table {}: its files are in several stores, rows were \
             changed, or columns have other names in files",
                scan.table_name()
            )
        }
        (None, _) => Ok(Arc::new(scan)),
    }
}

/// A scan of a table, or of one of its replicas if that costs less.
async fn of_cheapest_copy(
    session: &dyn Session,
    scan: SharedScanExec,
    replicas: &[Arc<ScanSource>],
) -> Result<SharedScanExec> {
    let mut copies = vec![scan.as_copy(bytes(session, &scan))];
    for replica in replicas {
        let scan = scan.on_copy(replica)?.with_bloom_filters().await?;
        copies.push(scan.as_copy(bytes(session, &scan)));
    }
    scan.of_choice(CopyChoice::new(copies))
}

/// The stored bytes that a scan would need.
fn bytes(session: &dyn Session, scan: &SharedScanExec) -> ScanBytes {
    let (source, requirements) = (scan.source(), scan.requirements());
    let shares = NotShared::of(session.config()).is_none();
    let cheaper = unshared::if_cheaper(session, source, &requirements).filter(|_| shares);
    if let Some(cheaper) = cheaper {
        return ScanBytes { unshared: cheaper.direct_bytes, shared: 0 };
    }
    let rows = requirements.needed.rows_in(source.table.table(), &requirements.needed.chunks);
    let bytes = source.manager.scan_bytes(&source.table, requirements.projection, &rows);
    match shares {
        true => bytes,
        false => ScanBytes { unshared: bytes.unshared + bytes.shared, shared: 0 },
    }
}
