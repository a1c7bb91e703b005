//! A dashboard over a directory to which a file is added between refreshes.
//!
//! At each refresh all panels are computed at the same time, over all files. What they compute of the old files is what they
//! computed at the refresh before, so that an engine that keeps results has only the new file to read.

mod files;
mod metrics;
mod panels;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coscan_runtime::BufferManager;
use coscan_storage::table::FileOptions;

use crate::engines::{Device, EngineKind, Source, SqlEngine, manager_options, memory_fault};
use crate::metrics::{Compared, median};
use crate::rounds::in_turn;
use crate::runner::{Engine, EngineError, Run, run_streams};
use crate::workload::Stream;
use files::{add, compulsory_bytes};
use metrics::Refresh;
use panels::TABLE;

pub use metrics::{DashboardReport, RefreshReport};
pub use panels::{PANELS, Panel};

/// The experiment: files, panels and device.
#[derive(Debug, Clone)]
pub struct Dashboard {
    /// Files `day=…/lineitem.parquet`. At each refresh but the first one more of them is there.
    pub files: Vec<PathBuf>,
    /// The number of refreshes, at least one and at most the number of files.
    pub refreshes: usize,
    /// The directory of the run, which must not exist. The caller removes it.
    pub directory: PathBuf,
    /// The panels.
    pub panels: Vec<Panel>,
    /// The device that the files are read from.
    pub device: Device,
    /// coscan's pool, in bytes.
    pub pool_bytes: u64,
    /// coscan's memory for decoded columns, in bytes.
    pub decode_bytes: u64,
    /// The options of coscan's table: the size of chunks and the layout of pages.
    pub table_options: FileOptions,
}

/// What was measured on all engines.
#[derive(Debug)]
pub struct DashboardRun {
    /// The number of files at the first refresh.
    pub files: usize,
    /// The stored bytes of the columns that panels read: of all files of the first refresh, and the median of the files that
    /// were added.
    pub compulsory_bytes: (u64, u64),
    /// The engines.
    pub compared: Compared<DashboardReport>,
}

impl Dashboard {
    /// Refreshes the dashboard on all engines in turn. `on_refresh` gets the number of the refresh, from 0, and the engine.
    ///
    /// # Errors
    /// If there is no engine, there are fewer files than refreshes, a file cannot be added, a query fails, or an engine does not see all files.
    pub async fn run(
        &self,
        kinds: &[EngineKind],
        on_refresh: &dyn Fn(usize, EngineKind),
    ) -> Result<DashboardRun, EngineError> {
        let is_empty = self.refreshes == 0 || self.panels.is_empty() || kinds.is_empty();
        if is_empty || self.files.len() < self.refreshes {
            return Err(
                "there is nothing to run; give at least one engine, refresh, panel and file".into(),
            );
        }
        let (old, new) = self.files.split_at(self.files.len() - (self.refreshes - 1));
        for file in old {
            add(&self.directory, file)?;
        }
        let mut engines = Vec::new();
        for &kind in kinds {
            let started = Instant::now();
            engines.push((kind, Arc::new(self.engine(kind).await?), started.elapsed()));
        }
        let mut refreshes: Vec<Vec<Refresh>> = kinds.iter().map(|_| Vec::new()).collect();
        let mut differences = Vec::new();
        for refresh in 0..self.refreshes {
            if let Some(added) = refresh.checked_sub(1) {
                add(&self.directory, &new[added])?;
            }
            let runs = in_turn(refresh, &engines, async |(kind, engine, _)| {
                on_refresh(refresh, *kind);
                let (listing, run) = self.refresh(engine).await?;
                self.check_files(&run, old.len() + refresh)?;
                Ok((listing, run))
            });
            let runs = runs.await?;
            let base = &runs[0].1;
            for ((kind, refreshes), (listing, run)) in kinds.iter().zip(&mut refreshes).zip(&runs) {
                let difference = run.compare(base).err();
                refreshes.push(Refresh::new(*listing, run, difference.is_none()));
                differences
                    .extend(difference.map(|difference| {
                        format!("{kind}, refresh {}: {difference}", refresh + 1)
                    }));
            }
        }
        for (kind, engine, _) in &engines {
            let fault = engine.manager_report().as_ref().and_then(memory_fault);
            differences.extend(fault.map(|fault| format!("{kind}: {fault}")));
        }
        let opened = engines.iter().map(|(kind, _, opened)| (*kind, *opened));
        let reports = opened.zip(&refreshes).map(|((kind, opened), of_engine)| {
            DashboardReport::new(kind, opened, of_engine, &refreshes[0])
        });
        let bytes = |files: &[PathBuf]| -> Result<Vec<u64>, EngineError> {
            files.iter().map(|file| compulsory_bytes(file, &self.panels)).collect()
        };
        let of_added = median(bytes(new)?.into_iter().map(|bytes| bytes as f64)) as u64;
        Ok(DashboardRun {
            files: old.len(),
            compulsory_bytes: (bytes(old)?.into_iter().sum(), of_added),
            compared: Compared { reports: reports.collect(), differences },
        })
    }

    async fn engine(&self, kind: EngineKind) -> Result<SqlEngine, EngineError> {
        let location = self.directory.display().to_string();
        let source = Source { location, device: self.device.clone() };
        let manager = kind.policy().map(|policy| {
            let options = manager_options(self.pool_bytes, self.decode_bytes, 0);
            BufferManager::new(options.policy(policy))
        });
        let engine =
            SqlEngine::of_directory(&source, TABLE, manager.transpose()?, self.table_options);
        Ok(engine.await?.with_kind(kind))
    }

    /// Lists the files, then computes all panels. Returns the time of both.
    async fn refresh(
        &self,
        engine: &Arc<SqlEngine>,
    ) -> Result<(Duration, Run<Panel>), EngineError> {
        let started = Instant::now();
        engine.refresh(TABLE).await?;
        let listing = started.elapsed();
        let streams: Vec<_> = self.panels.iter().map(|panel| Stream::once(vec![*panel])).collect();
        let shared: Arc<dyn Engine> = Arc::clone(engine) as _;
        Ok((listing, run_streams(shared, &streams, TABLE).await?))
    }

    /// Whether the first panel, if that is one of all days, has as many as there are files.
    fn check_files(&self, run: &Run<Panel>, files: usize) -> Result<(), EngineError> {
        let first = run.queries.iter().find(|answered| answered.query == PANELS[0]);
        let days = first.map(|first| first.answer.iter().map(|batch| batch.num_rows()).sum());
        match days {
            Some::<usize>(days) if days != files => {
                Err(format!("{} saw {days} of {files} files", run.engine).into())
            }
            _ => Ok(()),
        }
    }
}
