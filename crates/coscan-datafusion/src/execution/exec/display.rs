//! EXPLAIN of a shared scan.

use std::fmt;

use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::SharedScanExec;
use crate::execution::ranking::SortKey;
use crate::planning::nan::undecided;
use crate::settings::SessionSettings;

impl SharedScanExec {
    /// The columns by which fewer chunks are ruled out or ranked for a top-k, because needed chunks may hold NaN in
    /// them. Each has the number of those chunks.
    fn undecided_for_nan(&self) -> Vec<(usize, usize)> {
        let top_k_order: Vec<_> = self.top_k_order.iter().flat_map(SortKey::columns).collect();
        undecided(self.source.table.table(), &self.filters, &top_k_order, &self.needed.chunks)
    }
}

impl SharedScanExec {
    /// The number of rows of needed chunks that are deleted in the snapshot, if there are any.
    fn deleted_rows(&self) -> Option<u64> {
        let table = self.source.table.table();
        if table.changes().files.is_empty() {
            return None;
        }
        let chunks = self.needed.chunks.iter().copied();
        let stored = chunks.filter(|&chunk| table.inserted_file() != Some(table.chunk_file(chunk)));
        let rows = self.needed.rows_in(table, &stored.collect::<Vec<_>>()).into_iter();
        let deleted = rows.map(|rows| rows.end - rows.start - table.visible_rows(rows)).sum();
        Some(deleted).filter(|deleted| *deleted > 0)
    }
}

impl DisplayAs for SharedScanExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let policy = self.source.manager.options().policy;
        let (needed, total) = (self.needed.chunks.len(), self.needed.total);
        if matches!(kind, DisplayFormatType::TreeRender) {
            writeln!(f, "table={}", self.table_name())?;
            if let Some(version) = self.source.version {
                writeln!(f, "version={version}")?;
            }
            if let Some(choice) = &self.copy_choice {
                writeln!(f, "{choice}")?;
            }
            writeln!(f, "policy={policy}")?;
            writeln!(f, "chunks={needed} of {total}")?;
            return match self.first_rows() {
                Some(_) => writeln!(f, "reads=first_pages"),
                None => Ok(()),
            };
        }
        write!(f, "SharedScanExec: table={}, ", self.table_name())?;
        if let Some(version) = self.source.version {
            write!(f, "version={version}, ")?;
        }
        write!(f, "policy={policy}, ")?;
        if let Some(choice) = &self.copy_choice {
            write!(f, "{choice}, ")?;
        }
        match &self.ordered_for {
            None => write!(f, "order=any ({})", self.unordered_reason)?,
            Some(operator) => {
                write!(f, "order=table, needed_by={operator}, workers={}", self.workers)?;
            }
        }
        if self.settings.weight != SessionSettings::default().weight {
            write!(f, ", weight={}", self.settings.weight)?;
        }
        write!(f, ", chunks={needed} of {total} ({} pruned)", self.needed.pruned())?;
        if let Some(selected) = &self.needed.selected {
            let rows: u64 = selected.iter().map(|rows| rows.end - rows.start).sum();
            write!(f, ", rows={rows}")?;
        }
        if let Some(deleted) = self.deleted_rows() {
            write!(f, ", deleted_rows={deleted}")?;
        }
        write!(f, ", projection=[{}]", columns.join(", "))?;
        if !self.filters.is_empty() {
            let filters: Vec<_> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", predicate={}", filters.join(" AND "))?;
        }
        if !self.pushed_filters.is_empty() {
            let pushed: Vec<_> = self.pushed_filters.iter().map(ToString::to_string).collect();
            write!(f, ", pushed_filters={}", pushed.join(" AND "))?;
        }
        if let Some(key) = &self.top_k_order {
            write!(f, ", top_k_order=[{}]", key.display(self.source.table.table()))?;
        }
        for (position, (column, chunks)) in self.undecided_for_nan().into_iter().enumerate() {
            let name = self.source.table.table().schema().field(column).name();
            let separator = if position == 0 { ", may_hold_nan=" } else { " and " };
            write!(f, "{separator}{name} in {chunks} chunks")?;
        }
        if let Some(reason) = self.unshared_reason {
            write!(f, ", results=not shared ({reason})")?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, ", fetch={fetch}")?;
        }
        if let Some(query) = self.state.query.get() {
            write!(f, ", query={query}")?;
        }
        match self.first_rows() {
            Some(_) => write!(f, ", reads=first_pages"),
            None => Ok(()),
        }
    }
}
