//! An experiment in words, for the head of its report.

use coscan_bench::experiment::Prepared;
use coscan_bench::report::RunDescription;
use coscan_bench::workload::{Kind, Percent, StreamGroup};

use crate::sizes::show_bytes;

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
