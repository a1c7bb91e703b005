//! Runs one experiment on several engines, shows progress, and collects the reports.

use std::fmt;
use std::path::{Path, PathBuf};

use coscan_bench::engines::EngineKind;
use coscan_bench::experiment::{EngineRun, Experiment, PoolSize, Prepared};
use coscan_bench::metrics::{EngineReport, Standalone};
use coscan_bench::report::{RunDescription, bytes, latency, reads};
use coscan_bench::workload::{Kind, Percent, Query, StreamGroup};
use coscan_runtime::ManagerReport;
use coscan_sim::report::draw::figure::Figure;
use indicatif::{ProgressBar, ProgressStyle};

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

/// The results of an experiment.
pub(crate) struct Comparison {
    /// The experiment.
    pub(crate) prepared: Prepared,
    /// One report per engine, in the requested order.
    pub(crate) reports: Vec<EngineReport>,
    /// The answers that differ from those of the first engine.
    pub(crate) differences: Vec<String>,
    /// Other failures. coscan held more than its budget, or its decisions could not be recorded.
    pub(crate) faults: Vec<String>,
}

/// Times every kind of query alone, then runs all streams on each engine in turn, as [`run_engines`] does.
pub(crate) async fn compare(
    experiment: Experiment,
    engines: &[EngineChoice],
    record: Option<&Path>,
) -> Result<Comparison, Failure> {
    let bar = spinner();
    let (prepared, standalone) = prepare(experiment, &bar).await?;
    let comparison = run_engines(prepared, &standalone, engines, record, &bar).await?;
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

/// Runs all streams on each engine in turn.
///
/// Answers are compared with those of the first engine. Decisions of coscan are recorded in the file `record`.
pub(crate) async fn run_engines(
    prepared: Prepared,
    standalone: &Standalone,
    engines: &[EngineChoice],
    record: Option<&Path>,
    bar: &ProgressBar,
) -> Result<Comparison, Failure> {
    let mut reports = Vec::new();
    let mut differences = Vec::new();
    let mut faults = Vec::new();
    let mut expected: Option<EngineRun> = None;
    for &engine in engines {
        bar.set_message(format!("{} streams on {engine}", prepared.streams.len()));
        let file = record.and_then(|file| record_file(file, engine, engines));
        let part = |pool: Percent| PoolSize::PartOfTouched(f64::from(pool.get()) / 100.0);
        let pool = engine.pool.map_or(prepared.experiment.pool, part);
        let run = prepared.with_pool(pool).run(engine.kind, file.as_deref()).await?;
        let difference =
            expected.as_ref().and_then(|expected| run.run.compare(&expected.run).err());
        let report = run.run.report(standalone, difference.is_none())?;
        let report = EngineReport { engine: engine.to_string(), ..report };
        bar.suspend(|| eprintln!("{}", line(&report, run.manager.as_ref())));
        differences.extend(difference.map(|difference| format!("{engine}: {difference}")));
        if let Some(manager) =
            run.manager.filter(|manager| manager.held_bytes_max > manager.memory_bytes)
        {
            let held = show_bytes(manager.held_bytes_max);
            faults.push(format!("{engine} held {held} of {}", show_bytes(manager.memory_bytes)));
        }
        if let Some(Err(error)) = &run.recorded {
            faults.push(format!("{engine}: its decisions could not be recorded: {error}"));
        }
        reports.push(report);
        expected.get_or_insert(run);
    }
    Ok(Comparison { prepared, reports, differences, faults })
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
    // The part of all columns of chunks that were taken decoded from another query.
    let reused = manager.map_or(String::new(), |manager| {
        let slices = (manager.slices_decoded + manager.slices_reused).max(1);
        format!("{:.0} %", 100.0 * manager.slices_reused as f64 / slices as f64)
    });
    format!(
        "  {:<14} {:>7.1} s   stream {:>6.1} s   normalized latency {:>6.2}   {:>8} in {:>6} reads   \
         decoded by others {reused:>4}   {}",
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

/// The heading of a report, with the experiment and its data.
pub(crate) fn describe(prepared: &Prepared) -> RunDescription {
    let experiment = &prepared.experiment;
    let limits = experiment.source.device.limits;
    let bandwidth = limits
        .bytes_per_second
        .map_or("unlimited".to_owned(), |rate| format!("{}/s", show_bytes(rate)));
    let cache =
        if experiment.source.device.system_cache { "used" } else { "bypassed (direct I/O)" };
    let groups = experiment.groups.iter().map(|group| (group.name.clone(), describe_group(group)));
    let parameters = [
        ("table", format!("{} rows, {}", prepared.table_rows, show_bytes(prepared.table_bytes))),
        ("seed", experiment.seed.to_string()),
        ("constants", experiment.constants.to_string()),
        ("stagger", format!("{:.2} s", experiment.stagger.unwrap_or_default().as_secs_f64())),
        ("device", format!("{bandwidth}, {} ms a request", limits.latency.as_millis())),
        ("cache of the operating system", cache.to_owned()),
        ("bytes that the queries touch", show_bytes(prepared.touched_bytes)),
        ("coscan's pool", show_bytes(prepared.pool_bytes())),
        ("coscan's memory for decoded columns", show_bytes(experiment.decode_bytes)),
        ("cores", coscan_bench::process::cores().to_string()),
        ("warm", if experiment.warm { "yes" } else { "no" }.to_owned()),
    ];
    let title = match experiment.groups.as_slice() {
        [group] => format!("{} streams of {} queries", group.streams, group.queries_per_stream),
        _ => format!("{} streams", prepared.streams.len()),
    };
    RunDescription {
        title,
        summary: "Many queries over one Parquet table at the same time: plain DataFusion, and DataFusion with coscan \
                  under each policy."
            .to_owned(),
        parameters: groups
            .chain(parameters.map(|(name, value)| (name.to_owned(), value)))
            .collect(),
        touched_bytes: Some(prepared.touched_bytes),
    }
}

/// A line on a group of streams, with the number of streams and their queries.
fn describe_group(group: &StreamGroup) -> String {
    let percents: Vec<_> = group
        .percents
        .iter()
        .filter(|&&percent| percent != Percent::ONE_KEY)
        .map(|percent| percent.to_string())
        .collect();
    let kinds: Vec<_> = Kind::ALL
        .into_iter()
        .filter(|kind| group.mix.kinds().contains(kind))
        .map(|kind| format!("{}: {}", kind.name(), kind.words()))
        .collect();
    let range = match percents.is_empty() {
        true => String::new(),
        false => format!(", {} % of l_orderkey", percents.join(", ")),
    };
    let again = match group.repeats {
        true => format!(", {} ms apart, again and again", group.think.as_millis()),
        false => String::new(),
    };
    format!(
        "{} of {} queries{again}; {} ({}){range}",
        group.streams,
        group.queries_per_stream,
        group.mix,
        kinds.join(", ")
    )
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
