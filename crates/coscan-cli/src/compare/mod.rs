//! Runs one experiment on several engines, shows progress, and collects the reports.

mod description;

use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};

use coscan_bench::engines::EngineKind;
use coscan_bench::experiment::{Experiment, PoolSize, Prepared};
use coscan_bench::metrics::{EngineReport, Standalone};
use coscan_bench::report::{bytes, latency, reads};
use coscan_bench::rounds::{RoundsReport, in_turn};
use coscan_bench::runner::Run;
use coscan_bench::workload::{Percent, Query};
use coscan_runtime::ManagerReport;
use coscan_sim::report::draw::figure::Figure;
use indicatif::{ProgressBar, ProgressStyle};

pub(crate) use description::describe;

use crate::Failure;
use crate::sizes::show_bytes;

/// An engine of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EngineChoice {
    pub(crate) kind: EngineKind,
    /// coscan's pool, in percent of the bytes that the queries touch. `None` for the pool of the experiment.
    pub(crate) pool: Option<Percent>,
}

impl From<EngineKind> for EngineChoice {
    fn from(kind: EngineKind) -> Self {
        Self { kind, pool: None }
    }
}

impl fmt::Display for EngineChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        self.pool.map_or(Ok(()), |pool| write!(f, "-{pool}"))
    }
}

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs<'a> {
    /// The engines, in the order of reports.
    pub(crate) engines: &'a [EngineChoice],
    /// How often all streams run on each engine. Engines take turns.
    pub(crate) rounds: usize,
    /// The file in which the decisions of coscan in the first round are recorded.
    pub(crate) record: Option<&'a Path>,
}

impl<'a> Runs<'a> {
    /// One run on each engine.
    pub(crate) fn once(engines: &'a [EngineChoice]) -> Self {
        Self { engines, rounds: 1, record: None }
    }
}

/// The results of an experiment.
pub(crate) struct Comparison {
    /// The experiment.
    pub(crate) prepared: Prepared,
    /// One report per engine, in the requested order: of the round with the median of its total times.
    pub(crate) reports: Vec<EngineReport>,
    /// All rounds of each engine.
    pub(crate) rounds: Vec<RoundsReport>,
    /// The answers that differ from those of the first engine.
    pub(crate) differences: Vec<String>,
    /// Other failures. coscan held more than its budget, or its decisions could not be recorded.
    pub(crate) faults: Vec<String>,
}

/// Times every kind of query alone, then runs all streams on each engine in turn, as [`run_engines`] does.
pub(crate) async fn compare(experiment: Experiment, runs: Runs<'_>) -> Result<Comparison, Failure> {
    let bar = spinner();
    let (prepared, standalone) = prepare(experiment, &bar).await?;
    let comparison = run_engines(prepared, &standalone, runs, &bar).await?;
    bar.finish_and_clear();
    Ok(comparison)
}

/// Opens the table, draws the streams, and times every kind of query alone.
pub(crate) async fn prepare(
    experiment: Experiment,
    bar: &ProgressBar,
) -> Result<(Prepared, Standalone), Failure> {
    let mut prepared = experiment.prepare().await?;
    let tell = |query: &Query| {
        bar.set_message(format!("{} alone on plain DataFusion", query.label()));
    };
    let standalone = prepared.standalone(&tell).await?;
    Ok((prepared, standalone))
}

/// Runs all streams on each engine in turn, in as many rounds as were asked for.
///
/// Answers of all runs are compared with those of the first one.
pub(crate) async fn run_engines(
    prepared: Prepared,
    standalone: &Standalone,
    runs: Runs<'_>,
    bar: &ProgressBar,
) -> Result<Comparison, Failure> {
    let mut reports: Vec<Vec<EngineReport>> = runs.engines.iter().map(|_| Vec::new()).collect();
    let (mut differences, mut faults) = (Vec::new(), Vec::new());
    let expected: OnceCell<Run> = OnceCell::new();
    for round in 0..runs.rounds.max(1) {
        let of_round = in_turn(round, runs.engines, async |&engine| {
            let name = match runs.rounds {
                0 | 1 => engine.to_string(),
                rounds => format!("{engine}, round {} of {rounds}", round + 1),
            };
            bar.set_message(format!("{} streams on {name}", prepared.streams.len()));
            let file = runs.record.filter(|_| round == 0);
            let file = file.and_then(|file| record_file(file, engine, runs.engines));
            let part = |pool: Percent| PoolSize::PartOfTouched(f64::from(pool.get()) / 100.0);
            let pool = engine.pool.map_or(prepared.experiment.pool, part);
            let run = prepared.with_pool(pool).run(engine.kind, file.as_deref()).await?;
            let faults: Vec<_> =
                run.faults().into_iter().map(|fault| format!("{name}: {fault}")).collect();
            let difference = expected.get().and_then(|expected| run.run.compare(expected).err());
            let report = run.run.report(standalone, difference.is_none())?;
            let report = EngineReport { engine: engine.to_string(), ..report };
            bar.suspend(|| eprintln!("{}", line(&report, run.manager.as_ref())));
            expected.get_or_init(|| run.run);
            let difference = difference.map(|difference| format!("{name}: {difference}"));
            Ok((report, difference, faults))
        });
        for (reports, (report, difference, found)) in reports.iter_mut().zip(of_round.await?) {
            reports.push(report);
            differences.extend(difference);
            faults.extend(found);
        }
    }
    let base = reports.first().cloned().unwrap_or_default();
    let rounds = reports.into_iter().map(|reports| RoundsReport::new(reports, &base));
    let rounds: Vec<_> = rounds.collect();
    let reports = rounds.iter().filter_map(RoundsReport::median_run).collect();
    Ok(Comparison { prepared, reports, rounds, differences, faults })
}

/// The file in which the decisions of one engine are recorded. It is `file` itself if coscan runs only once. Otherwise
/// each policy and pool has a file, with their names before the extension. Plain DataFusion makes no decisions.
fn record_file(file: &Path, engine: EngineChoice, engines: &[EngineChoice]) -> Option<PathBuf> {
    let decides = |engine: &EngineChoice| engine.kind != EngineKind::DataFusion;
    if !decides(&engine) {
        return None;
    }
    if engines.iter().filter(|engine| decides(engine)).count() == 1 {
        return Some(file.to_owned());
    }
    let mut name = file.file_stem()?.to_owned();
    name.push(format!(".{engine}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    Some(file.with_file_name(name))
}

fn line(report: &EngineReport, manager: Option<&ManagerReport>) -> String {
    // The part of all columns of chunks that were found decoded.
    let reused = manager.map_or(String::new(), |manager| {
        let slices = (manager.slices_decoded + manager.slices_reused).max(1);
        format!("{:.0} %", 100.0 * manager.slices_reused as f64 / slices as f64)
    });
    format!(
        "  {:<14} {:>7.1} s   stream {:>6.1} s   normalized latency {:>6.2}   {:>8} in {:>6} reads   \
         found decoded     {reused:>4}   {}",
        report.engine,
        report.total_s,
        report.stream_avg_s,
        report.normalized_latency_avg,
        show_bytes(report.bytes_read),
        report.io_requests,
        if report.answers_equal { "answers equal" } else { "ANSWERS DIFFER" },
    )
}

/// Shows the current step and its time.
pub(crate) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

/// Writes each picture of a comparison to a file of its own.
pub(crate) fn write_pictures(directory: &Path, comparison: &Comparison) -> Result<(), Failure> {
    let reports = &comparison.reports;
    let touched_bytes = Some(comparison.prepared.touched_bytes);
    let pictures = [
        ("reads.svg", reads::figure(reports)),
        ("latency.svg", latency::figure(reports)),
        ("bytes.svg", bytes::figure(reports, touched_bytes)),
    ];
    for (name, picture) in pictures {
        write_picture(directory, name, &picture)?;
    }
    Ok(())
}

/// Writes one picture as a file.
pub(crate) fn write_picture(directory: &Path, name: &str, picture: &Figure) -> Result<(), Failure> {
    let path = directory.join(name);
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&path, picture.standalone()))
        .map_err(|error| format!("cannot write {}: {error}", path.display()).into())
}

impl Comparison {
    /// Returns an error if answers differ or anything else failed.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let faults: Vec<_> = self.differences.iter().chain(&self.faults).cloned().collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_pools_that_run_together_have_a_log_each() {
        let engine = |name: &str| {
            let (name, pool) = name.split_once(' ').map_or((name, None), |(n, p)| (n, Some(p)));
            let pool = pool.map(|pool| pool.parse().expect("a percentage"));
            EngineChoice { kind: name.parse().expect("an engine"), pool }
        };
        let file = |kind: &str, engines: &[&str]| {
            let engines: Vec<_> = engines.iter().map(|name| engine(name)).collect();
            let file = record_file(Path::new("runs/a.jsonl"), engine(kind), &engines);
            file.map(|file| file.display().to_string())
        };
        let one = ["datafusion", "attach"];
        assert_eq!(file("attach", &one).as_deref(), Some("runs/a.jsonl"));
        assert_eq!(file("datafusion", &one), None);
        let two = ["normal", "attach"];
        assert_eq!(file("attach", &two).as_deref(), Some("runs/a.attach.jsonl"));
        assert_eq!(file("normal", &two).as_deref(), Some("runs/a.normal.jsonl"));
        let pools = ["normal 20", "normal 40"];
        assert_eq!(file("normal 40", &pools).as_deref(), Some("runs/a.normal-40.jsonl"));
    }
}
