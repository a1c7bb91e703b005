//! EXPLAIN of a shared scan.

use std::fmt;

use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::SharedScanExec;
use crate::settings::SessionSettings;

impl DisplayAs for SharedScanExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let policy = self.source.manager.options().policy;
        let (needed, total) = (self.needed.chunks.len(), self.needed.total);
        if matches!(kind, DisplayFormatType::TreeRender) {
            writeln!(f, "table={}", self.table_name())?;
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
        write!(f, "SharedScanExec: table={}, policy={policy}, ", self.table_name())?;
        if let Some(choice) = &self.copy_choice {
            write!(f, "{choice}, ")?;
        }
        match &self.ordered_for {
            None => write!(f, "order=any, why={}", self.why_any)?,
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
        write!(f, ", projection=[{}]", columns.join(", "))?;
        if !self.filters.is_empty() {
            let filters: Vec<_> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", predicate={}", filters.join(" AND "))?;
        }
        if !self.evaluated.is_empty() {
            let evaluated: Vec<_> = self.evaluated.iter().map(ToString::to_string).collect();
            write!(f, ", evaluated={}", evaluated.join(" AND "))?;
        }
        if let Some(key) = &self.first_by {
            write!(f, ", first_by=[{}]", key.display(self.source.table.table()))?;
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
