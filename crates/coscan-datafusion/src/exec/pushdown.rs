//! What a shared scan takes over from the operators above it.

use std::sync::Arc;

use coscan_runtime::core::Order;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::FilterPushdownPhase;
use datafusion::physical_plan::projection::ProjectionExec;

use super::SharedScanExec;
use crate::ranking::SortKey;
use crate::source::{ScanSource, properties};

impl SharedScanExec {
    /// The same with more filters, on the output's schema. Its partitions change only if they may.
    pub(super) fn with_filters(
        &self,
        filters: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
        phase: FilterPushdownPhase,
    ) -> Result<Option<Self>> {
        let mut all = self.filters.clone();
        for filter in filters {
            let filter = self.on_table(&filter)?;
            if !all.contains(&filter) {
                all.push(filter);
            }
        }
        if all.len() == self.filters.len() {
            return Ok(None);
        }
        let (source, projection) = (Arc::clone(&self.source), self.projection.clone());
        let zones_left = self.zones_left.clone();
        let mut scan = Self::new(source, projection, all, self.settings, zones_left)?;
        scan.fetch = self.fetch;
        scan.evaluated.clone_from(&self.evaluated);
        scan.first_by.clone_from(&self.first_by);
        scan.has_partitions_asked_for = self.has_partitions_asked_for;
        if !matches!(phase, FilterPushdownPhase::Pre) {
            scan.properties = Arc::clone(&self.properties);
        }
        Ok(Some(scan))
    }

    /// The same, and it gives only rows that these filters, on the output's schema, let through.
    pub(super) fn evaluating(&self, filters: &[Arc<dyn PhysicalExpr>]) -> Result<Self> {
        let mut scan = self.fresh();
        for filter in filters {
            scan.evaluated.push(self.on_table(filter)?);
        }
        Ok(scan)
    }

    /// An expression on the output's schema as one on the table's.
    fn on_table(&self, filter: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let filter = self.output_projection().unproject_expr(filter)?;
        reassign_expr_columns(filter, self.source.table.table().schema())
    }

    /// The same with the columns of a projection, if that only leaves out or reorders some.
    pub(super) fn with_projection(&self, projection: &ProjectionExec) -> Result<Option<Self>> {
        let mut columns = Vec::with_capacity(projection.expr().len());
        for expression in projection.expr() {
            let Some(column) = expression.expr.downcast_ref::<Column>() else { return Ok(None) };
            let column_of_table = self.projection[column.index()];
            if column.name() != expression.alias || columns.contains(&column_of_table) {
                return Ok(None);
            }
            columns.push(column_of_table);
        }
        let properties = properties(&self.source, &columns, self.partition_count())?;
        let properties = Arc::new(properties);
        Ok(Some(Self { projection: columns, properties, ..self.fresh() }))
    }

    /// The same for a sort above that wants the first rows of this order, if it can read those first.
    pub(super) fn with_first_by(&self, order: &[PhysicalSortExpr]) -> Result<Option<Self>> {
        let key = SortKey::new(order, &self.projection).filter(|_| self.fetch.is_none());
        let Some(key) = key else { return Ok(None) };
        let declared = self.properties.equivalence_properties().output_ordering();
        if declared.is_some_and(|declared| order.first() == Some(declared.first())) {
            return Ok(None);
        }
        let mut scan = Self { first_by: Some(key), ..self.fresh() };
        if self.order() == Order::InOrder {
            let source = ScanSource { orderings: Vec::new(), ..self.source.as_ref().clone() };
            let properties = properties(&source, &self.projection, self.partition_count())?;
            scan = Self { source: Arc::new(source), properties: Arc::new(properties), ..scan };
        }
        Ok(Some(scan))
    }

    /// From the columns of the table to those of the output.
    pub(super) fn output_projection(&self) -> ProjectionExprs {
        ProjectionExprs::from_indices(&self.projection, self.source.table.table().schema())
    }
}
