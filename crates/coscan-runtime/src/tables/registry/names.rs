//! The names of tables and their columns, for reports.

use std::sync::Arc;

use coscan_core::{Index, TableId};
use coscan_storage::table::ParquetTable;

use super::Registry;

/// The names of a table and of its column groups.
#[derive(Clone, Debug)]
pub(crate) struct TableNames {
    pub(crate) table: Arc<str>,
    pub(crate) groups: Arc<[String]>,
}

impl TableNames {
    /// The names of a table: the name that it is registered by, or that of its first file until a query uses another.
    pub(super) fn of(table: &ParquetTable, name: Option<&str>) -> Self {
        let first = table.parquet_files().first().map(|file| file.version().path());
        let file = first.and_then(|path| path.filename()).unwrap_or_default();
        Self {
            table: name.unwrap_or_else(|| file.strip_suffix(".parquet").unwrap_or(file)).into(),
            groups: groups_of(table, String::clone).into(),
        }
    }

    /// The names of a joint table of tables with these names.
    pub(super) fn joint<'a>(tables: impl Iterator<Item = (Arc<str>, &'a ParquetTable)>) -> Self {
        let (mut names, mut groups) = (Vec::new(), Vec::new());
        for (name, table) in tables {
            groups.extend(groups_of(table, |column| format!("{name}.{column}")));
            names.push(name);
        }
        Self { table: names.join(" + ").into(), groups: groups.into() }
    }
}

/// The names of the columns of each column group.
fn groups_of(table: &ParquetTable, name: impl Fn(&String) -> String) -> Vec<String> {
    let mut groups = vec![Vec::new(); table.group_count()];
    for (column, field) in table.schema().fields().iter().enumerate() {
        groups[table.group_of_column(column).as_usize()].push(name(field.name()));
    }
    groups.into_iter().map(|names| names.join(", ")).collect()
}

impl Registry {
    /// All tables with their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (TableId, &TableNames)> {
        self.tables.iter().map(|(&id, open)| (id, &open.names))
    }

    /// The name of a table; empty if it is not registered any more.
    pub(crate) fn name_of(&self, table: TableId) -> Arc<str> {
        self.tables.get(&table).map_or_else(Arc::default, |open| Arc::clone(&open.names.table))
    }

    /// Notes the name by which a query knows a table.
    pub(crate) fn name_table(&mut self, table: TableId, name: &Arc<str>) {
        if let Some(open) = self.tables.get_mut(&table) {
            open.names.table = Arc::clone(name);
        }
    }
}
