//! The snapshot of a table that a statement sees, and the replicas that it may read instead.

use std::sync::Arc;
use std::time::Duration;

use datafusion::catalog::Session;
use datafusion::error::Result;

use crate::settings::SessionSettings;
use crate::tables::provider::SharedTableProvider;
use crate::tables::replica;
use crate::tables::source::ScanSource;
use crate::tables::statement_snapshot::StatementSnapshot;

impl SharedTableProvider {
    /// The snapshot that a statement of a session sees: the newest one, if the session's `refresh_interval` has passed.
    ///
    /// # Errors
    /// If its footers were dropped to save memory and cannot be read again, or a local file was replaced.
    pub(crate) async fn statement_snapshot(
        &self,
        session: &dyn Session,
    ) -> Result<StatementSnapshot> {
        // Without a cache of lists the engine lists the files of its tables for each query.
        let has_lists = session.runtime_env().cache_manager.get_list_files_cache().is_some();
        let interval = SessionSettings::of(session.config()).refresh_interval;
        let planned = match self.snapshots.may_change_columns() {
            true => Some(self.snapshots.current().await?),
            false => None,
        };
        if let Some(interval) = interval.or_else(|| (!has_lists).then_some(Duration::ZERO)) {
            for copy in self.refreshed_copies() {
                copy.refresh_after(interval).await;
            }
        }
        let newest = self.snapshots.current().await?;
        // The statement was planned with the columns of the snapshot before.
        let schema = |source: &ScanSource| Arc::clone(source.table.table().schema());
        let source = planned.filter(|planned| schema(planned) != schema(&newest)).unwrap_or(newest);
        self.snapshots.check(&source).await?;
        let replicas = self.replicas_of(&source).await;
        Ok(StatementSnapshot::new(source, replicas))
    }

    /// The replicas that a query may read instead of a snapshot of the table: those with the same number of rows.
    async fn replicas_of(&self, table: &ScanSource) -> Vec<Arc<ScanSource>> {
        let mut replicas = Vec::with_capacity(self.replicas.len());
        for replica in &self.replicas {
            let current = replica.current().await;
            match current.and_then(|current| replica::check_rows(table, &current).map(|()| current))
            {
                Ok(current) => replicas.push(current),
                Err(error) => {
                    log::warn!("a scan does without a replica of {}: {error}", table.name)
                }
            }
        }
        replicas
    }
}
