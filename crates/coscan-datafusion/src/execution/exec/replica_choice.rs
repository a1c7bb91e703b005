//! The copy of the table that a scan reads.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::utils::reassign_expr_columns;

use super::SharedScanExec;
use crate::planning::replica_choice::{CopyChoice, PlannedCopy};
use crate::tables::source::ScanSource;
use coscan_runtime::ScanBytes;

impl SharedScanExec {
    /// Changes the scan to another copy of the table, without Bloom filters of that copy.
    pub(crate) fn on_copy(&self, source: &Arc<ScanSource>) -> Result<Self> {
        self.on_copy_with(source, None)
    }

    fn on_copy_with(
        &self,
        source: &Arc<ScanSource>,
        zones_left: Option<Arc<[bool]>>,
    ) -> Result<Self> {
        let (from, to) = (self.source.table.table().schema(), source.table.table().schema());
        let column = |&column: &usize| to.index_of(from.field(column).name());
        let projection = self.projection.iter().map(column).collect::<Result<_, _>>()?;
        let filters =
            self.filters.iter().map(|filter| reassign_expr_columns(Arc::clone(filter), to));
        let filters = filters.collect::<Result<_>>()?;
        let mut scan =
            Self::new(Arc::clone(source), projection, filters, self.settings, zones_left)?;
        scan.has_user_partitioning = self.has_user_partitioning;
        Ok(scan)
    }

    /// The copy that this scan reads, with these bytes.
    pub(crate) fn as_copy(&self, bytes: ScanBytes) -> PlannedCopy {
        let (source, zones_left) = (Arc::clone(&self.source), self.zones_left.clone());
        PlannedCopy { source, zones_left, bytes }
    }

    /// Changes the scan to the copy that was chosen.
    pub(crate) fn of_choice(&self, choice: CopyChoice) -> Result<Self> {
        let PlannedCopy { source, zones_left, .. } = choice.chosen();
        let scan = self.on_copy_with(source, zones_left.clone())?;
        Ok(Self { copy_choice: Some(choice), ..scan })
    }

    /// Scans of other copies that may be read instead if their order saves a sort, the cheapest first. There are none
    /// once operators above have changed this scan.
    pub(crate) fn on_copies_for_order(&self) -> Result<Vec<Self>> {
        let is_as_planned = self.fetch.is_none()
            && self.pushed_filters.is_empty()
            && self.top_k_order.is_none()
            && self.ordered_for.is_none();
        let choice = self.copy_choice.as_ref().filter(|_| is_as_planned);
        let others = choice.map(CopyChoice::others_for_order).unwrap_or_default();
        others.into_iter().map(|choice| self.of_choice(choice)).collect()
    }
}
