//! Filters, projections and orders that operators above push down into a shared scan.

use std::sync::Arc;

use coscan_runtime::core::Order;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_comparator};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};

use super::SharedScanExec;
use crate::execution::ranking::SortKey;
use crate::planning::bloom_filters;
use crate::planning::nan::may_be_nan;
use crate::tables::source::{is_dynamic, properties};

/// The minimum difference between the first and the last key of a chunk that is said to have many keys.
const KEYS_MIN: u64 = 16;

/// The order of the rows of each chunk of a scan.
pub(crate) struct ChunkOrder {
    /// The properties of the rows of a chunk as a plan of one partition.
    pub(crate) properties: Arc<PlanProperties>,
    /// The columns that lead each of its orders, as indexes into the scan's output.
    pub(crate) columns: Vec<Vec<usize>>,
}

impl SharedScanExec {
    /// Leaves out the zones that Bloom filters rule out. Bloom filters are read where they may help.
    pub(crate) async fn with_bloom_filters(self) -> Result<Self> {
        if !self.settings.reads_bloom_filters || self.filters.is_empty() {
            return Ok(self);
        }
        let (manager, table) = (&self.source.manager, self.source.table.table());
        let in_list_max = self.settings.in_list_max;
        let (filters, needed) = (&self.filters, &self.needed);
        let left = bloom_filters::may_match(manager, table, filters, needed, in_list_max).await;
        match left {
            None => Ok(self),
            Some(left) => Self::new(
                self.source,
                self.projection,
                self.filters,
                self.settings,
                Some(left.into()),
            ),
        }
    }

    /// Changes the scan to the table's order, which an operator above needs. Returns `None` if the table has none.
    ///
    /// The result has one partition, even if several tasks work on its chunks. If several partitions were merged above,
    /// each would have to hold a chunk before any could continue.
    pub(crate) fn in_table_order(&self, needed_by: &str) -> Result<Option<Self>> {
        let orders = self.source.table_orders(&self.settings);
        if orders.is_empty() || self.has_user_partitioning {
            return Ok(None);
        }
        let properties = Arc::new(properties(&self.source, &self.projection, 1, orders)?);
        Ok(Some(Self { ordered_for: Some(needed_by.into()), properties, ..self.clone() }))
    }

    /// The order of the rows of each chunk. `None` if the table has none, or the scan does not return whole chunks.
    pub(crate) fn order_of_chunks(&self) -> Result<Option<ChunkOrder>> {
        let in_order = if self.gives_chunks() { self.in_table_order("")? } else { None };
        let Some(in_order) = in_order else { return Ok(None) };
        let columns = in_order.orders().iter().map(|order| self.ordered_columns(order)).collect();
        Ok(Some(ChunkOrder { properties: in_order.properties, columns }))
    }

    /// Whether a chunk has many values of a column of the output, according to its bounds. Most chunks have to begin
    /// and end with different values, which are far apart where that is known.
    pub(crate) fn has_many_keys(&self, column: usize) -> Result<bool> {
        let Ok(statistics) = self.table().table().statistics(self.projection[column]) else {
            return Ok(false);
        };
        let (min, max) = (&statistics.min, &statistics.max);
        let compare = make_comparator(min, max, SortOptions::default())?;
        let chunks = 0..min.len();
        let is_apart = |&chunk: &usize| {
            min.is_valid(chunk) && max.is_valid(chunk) && compare(chunk, chunk).is_lt()
        };
        let apart = chunks.clone().filter(is_apart).count();
        let as_number = |values: &ArrayRef| {
            let numbers = cast(values, &DataType::Int64).ok()?;
            (numbers.null_count() == values.null_count()).then_some(numbers)
        };
        let width = as_number(min).zip(as_number(max)).map(|(min, max)| {
            let (min, max) = (min.as_primitive::<Int64Type>(), max.as_primitive::<Int64Type>());
            let widths =
                chunks.filter(is_apart).map(|chunk| max.value(chunk).abs_diff(min.value(chunk)));
            widths.fold(0, u64::saturating_add)
        });
        let is_wide = width.is_none_or(|width| width / apart.max(1) as u64 >= KEYS_MIN);
        Ok(2 * apart > min.len() && is_wide)
    }

    /// The properties of the rows of each chunk as a plan of one partition, or `None` if the scan does not return whole
    /// chunks.
    pub(crate) fn properties_of_chunks(&self) -> Result<Option<Arc<PlanProperties>>> {
        if !self.gives_chunks() {
            return Ok(None);
        }
        let orders = self.source.table_orders(&self.settings);
        Ok(Some(Arc::new(properties(&self.source, &self.projection, 1, orders)?)))
    }

    /// The properties of a scan in order that returns the rows of whole chunks, or `None` for other scans.
    pub(crate) fn properties_in_order(&self) -> Option<Arc<PlanProperties>> {
        let gives_chunks = self.order() == Order::InOrder
            && self.fetch.is_none()
            && self.pushed_filters.is_empty()
            && self.needed.selected.is_none();
        gives_chunks.then(|| Arc::clone(&self.properties))
    }

    /// Whether the scan returns all rows of each chunk that it reads, with the chunks in any order.
    fn gives_chunks(&self) -> bool {
        self.order() == Order::Any
            && !self.has_user_partitioning
            && self.top_k_order.is_none()
            && self.fetch.is_none()
            && self.pushed_filters.is_empty()
    }

    /// The columns of the output that lead an order. Numbers with NaN are left out, since NaN has more than one form.
    fn ordered_columns(&self, order: &LexOrdering) -> Vec<usize> {
        let schema = self.source.table.table().schema();
        let column = |key: &PhysicalSortExpr| {
            let column = key.expr.downcast_ref::<Column>()?.index();
            let data_type = schema.field(column).data_type();
            let is_comparable = !data_type.is_nested() && !may_be_nan(data_type);
            let position = self.projection.iter().position(|&projected| projected == column);
            position.filter(|_| is_comparable)
        };
        order.iter().map_while(column).collect()
    }

    /// Accepts filters from above. All of them rule chunks out. The scan evaluates them too if the session pushes
    /// filters down.
    pub(super) fn take_filters(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters: Vec<_> =
            result.parent_filters.into_iter().map(|filter| filter.filter).collect();
        if self.fetch.is_some() {
            // These filters are above the limit, so rows that they reject count towards it.
            let answers = vec![PushedDown::No; filters.len()];
            return Ok(FilterPushdownPropagation::with_parent_pushdown_result(answers));
        }
        let evaluates = self.settings.evaluates && matches!(phase, FilterPushdownPhase::Pre);
        let answer = |filter: &Arc<dyn PhysicalExpr>| match evaluates && !is_dynamic(filter) {
            true => PushedDown::Yes,
            false => PushedDown::No,
        };
        let answers: Vec<_> = filters.iter().map(answer).collect();
        let mut evaluated = filters.clone();
        evaluated.retain(|filter| matches!(answer(filter), PushedDown::Yes));
        let mut scan = self.with_filters(filters.into_iter(), phase)?;
        if !evaluated.is_empty() {
            scan = Some(scan.as_ref().unwrap_or(self).evaluating(&evaluated)?);
        }
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        Ok(match scan {
            Some(scan) => propagation.with_updated_node(Arc::new(scan)),
            None => propagation,
        })
    }

    /// Adds filters on the output's schema. Returns `None` if the scan has them already. The number of partitions
    /// changes only in the phase in which it may.
    pub(super) fn with_filters(
        &self,
        filters: impl Iterator<Item = Arc<dyn PhysicalExpr>>,
        phase: FilterPushdownPhase,
    ) -> Result<Option<Self>> {
        let mut all = self.filters.clone();
        for filter in filters {
            let filter = self.on_table(&filter)?;
            if self.is_useful(&filter)? && !all.contains(&filter) {
                all.push(filter);
            }
        }
        if all.len() == self.filters.len() {
            return Ok(None);
        }
        let (source, projection) = (Arc::clone(&self.source), self.projection.clone());
        let zones_left = self.zones_left.clone();
        let pruned = Self::new(source, projection, all, self.settings, zones_left)?;
        let properties = match phase {
            FilterPushdownPhase::Pre if self.ordered_for.is_none() => pruned.properties,
            _ => Arc::clone(&self.properties),
        };
        let (filters, needed) = (pruned.filters, pruned.needed);
        Ok(Some(Self { filters, needed, properties, ..self.clone() }))
    }

    /// Whether a filter on the table's schema may rule chunks out. A filter on nested values never does. A join that
    /// finds its dynamic filter here would compute bounds of its keys, and fail for keys that have none, such as maps.
    fn is_useful(&self, filter: &Arc<dyn PhysicalExpr>) -> Result<bool> {
        let schema = self.source.table.table().schema();
        let is_nested = |expression: &Arc<dyn PhysicalExpr>| {
            expression.data_type(schema).map(|data_type| data_type.is_nested())
        };
        Ok(!is_dynamic(filter) || !filter.exists(is_nested)?)
    }

    /// Makes the scan return only rows that pass these filters on the output's schema.
    pub(super) fn evaluating(&self, filters: &[Arc<dyn PhysicalExpr>]) -> Result<Self> {
        let mut scan = self.clone();
        for filter in filters {
            scan.pushed_filters.push(self.on_table(filter)?);
        }
        Ok(scan)
    }

    /// Converts an expression on the output's schema to one on the table's schema.
    fn on_table(&self, filter: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let filter = self.output_projection().unproject_expr(filter)?;
        reassign_expr_columns(filter, self.source.table.table().schema())
    }

    /// Changes the columns to those of a projection, if it only drops or reorders columns.
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
        let properties = properties(&self.source, &columns, self.partition_count(), self.orders())?;
        let properties = Arc::new(properties);
        Ok(Some(Self { projection: columns, properties, ..self.clone() }))
    }

    /// Sets the order of a top-k above, if the scan can read the chunks that may hold its rows first.
    pub(super) fn with_first_by(&self, order: &[PhysicalSortExpr]) -> Result<Option<Self>> {
        let is_free = self.fetch.is_none() && self.order() == Order::Any;
        let key = SortKey::new(order, &self.projection).filter(|_| is_free);
        Ok(key.map(|key| Self { top_k_order: Some(key), ..self.clone() }))
    }

    /// The projection from the columns of the table to those of the output.
    pub(super) fn output_projection(&self) -> ProjectionExprs {
        ProjectionExprs::from_indices(&self.projection, self.source.table.table().schema())
    }
}
