//! Reports as one self-contained page, without scripts, fonts or other files.

use std::fs;
use std::io;
use std::path::Path;

use coscan_sim::report::draw::figure::escape;
use coscan_sim::report::draw::numbers::{decimal, megabytes};
use coscan_sim::report::draw::page::{self, parameters, section};
use coscan_sim::report::draw::style::Hue;

use crate::metrics::EngineReport;

use super::flatness::{self, FlatnessPoint};
use super::rows::{kind_rows, system_rows};
use super::{RunDescription, bytes, latency, reads};

const FOOTER: &str = "After Zukowski, Héman, Nes, Boncz: “Cooperative Scans: Dynamic Bandwidth Sharing in a DBMS”, \
                      VLDB 2007 (Table 2, Figures 4 and 7).";

/// Writes the page of a run of streams, with the experiment, the table and the pictures.
///
/// # Errors
/// If the file cannot be written.
pub fn write_html(
    path: &Path,
    description: &RunDescription,
    reports: &[EngineReport],
) -> io::Result<()> {
    fs::write(path, streams_page(description, reports))
}

/// The text of the page that [`write_html`] writes.
pub fn streams_page(description: &RunDescription, reports: &[EngineReport]) -> String {
    let mut body = head(description);
    body.push_str(&equality(reports));
    body.push_str(&tiles(reports));
    body.push_str(&parameters(&description.parameters));
    body.push_str(
        "<h2>The figures</h2>\n<p class=\"caption\">The best of each row is bold. Latencies are \
         averages per kind of query; “norm.” is latency divided by the time that the query takes \
         alone with nothing in memory.</p>\n",
    );
    body.push_str(&system_table(reports));
    body.push_str(&kinds_table(reports));
    body.push_str(&section(
        "Reads over time",
        "Every dot is a read: when it was sent, and which part of the table it read. Slanted lines \
         are scans; many lines at once are scans that read the same data again.",
        &reads::figure(reports),
    ));
    body.push_str(&section(
        "Latency per kind of query",
        "Average latency divided by the time alone: 1× is as fast as with the machine to itself. \
         Shorter is better.",
        &latency::figure(reports),
    ));
    body.push_str(&section(
        "Bytes read",
        "From the device, for all queries together.",
        &bytes::figure(reports, description.touched_bytes),
    ));
    page::page(&description.title, &body, FOOTER)
}

/// The text of the page of the flatness experiment.
pub fn flatness_page(description: &RunDescription, points: &[FlatnessPoint]) -> String {
    let mut body = head(description);
    body.push_str(&parameters(&description.parameters));
    body.push_str(&section(
        "Average time of a query",
        "Against the number of streams that run at the same time. Flat is ideal: a query that \
         shares its reads does not notice the others.",
        &flatness::figure(points),
    ));
    page::page(&description.title, &body, FOOTER)
}

fn head(description: &RunDescription) -> String {
    page::head("coscan · cooperative scans", &description.title, &description.summary)
}

fn equality(reports: &[EngineReport]) -> String {
    let wrong: Vec<&str> = reports
        .iter()
        .filter(|report| !report.answers_equal)
        .map(|report| report.engine.as_str())
        .collect();
    if wrong.is_empty() {
        return "<p>All engines gave equal answers to all queries.</p>\n".to_string();
    }
    let engines = escape(&wrong.join(", "));
    format!(
        "<p class=\"wrong\"><b>The answers differ: {engines}.</b> The figures below do not count.</p>\n"
    )
}

/// The main figures of `coscan`, or else of `relevance` or of the last engine, with those of the first engine.
fn tiles(reports: &[EngineReport]) -> String {
    let named = |name: &str| reports.iter().rposition(|report| report.engine == name);
    let index = named("coscan").or_else(|| named("relevance"));
    let index = index.unwrap_or(reports.len().saturating_sub(1));
    if index == 0 {
        return String::new();
    }
    let (first, shown) = (&reports[0], &reports[index]);
    let first_engine = escape(&first.engine);
    let tile = |name: &str, unit: &str, value: f64, than: f64, show: &dyn Fn(f64) -> String| {
        format!(
            "<div class=\"tile\"><div class=\"name\">{name}</div><div class=\"value\">{value} \
             <span class=\"unit\">{unit}</span></div><div class=\"than\"><b>{ratio}</b> than \
             {first_engine}<br>with {than_value} {unit}</div></div>\n",
            value = show(value),
            than_value = show(than),
            ratio = ratio(value, than),
        )
    };
    let show_bytes = |bytes: f64| megabytes(bytes as u64);
    let (shown_bytes, first_bytes) = (shown.bytes_read as f64, first.bytes_read as f64);
    let (latency, first_latency) = (shown.normalized_latency_avg, first.normalized_latency_avg);
    format!(
        "<p class=\"shown\"><span class=\"{hue}\">{engine}</span> against {first_engine}</p>\n\
         <div class=\"tiles\">\n{}{}{}{}</div>\n",
        tile("Total time", "s", shown.total_s, first.total_s, &decimal),
        tile("Average stream time", "s", shown.stream_avg_s, first.stream_avg_s, &decimal),
        tile("Average normalized latency", "×", latency, first_latency, &decimal),
        tile("Bytes read", "MB", shown_bytes, first_bytes, &show_bytes),
        hue = Hue::of_engine(&shown.engine, index).class(),
        engine = escape(&shown.engine),
    )
}

fn ratio(value: f64, than: f64) -> String {
    match than / value {
        ratio if !ratio.is_finite() || ratio <= 0.0 => "not comparable".to_string(),
        ratio if ratio >= 1.0 => format!("{ratio:.1}× less"),
        ratio => format!("{:.1}× more", 1.0 / ratio),
    }
}

fn engine_headers(reports: &[EngineReport], columns: usize) -> String {
    let headers = reports.iter().enumerate().map(|(index, report)| {
        let hue = Hue::of_engine(&report.engine, index).class();
        format!("<th class=\"{hue}\" colspan=\"{columns}\">{}</th>", escape(&report.engine))
    });
    headers.collect()
}

fn system_table(reports: &[EngineReport]) -> String {
    let mut rows = String::new();
    for row in system_rows(reports) {
        let cells = row.values.iter().zip(&row.best).map(|(value, best)| {
            let class = if *best { " class=\"best\"" } else { "" };
            format!("<td{class}>{}</td>", escape(value))
        });
        let cells: String = cells.collect();
        rows.push_str(&format!("<tr><td class=\"name\">{}</td>{cells}</tr>\n", row.name));
    }
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th class=\"name\"></th>{}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n",
        engine_headers(reports, 1)
    )
}

fn kinds_table(reports: &[EngineReport]) -> String {
    let mut rows = String::new();
    for row in kind_rows(reports) {
        let cells =
            row.values.iter().zip(&row.best).map(|([average, deviation, normalized], best)| {
                let class = if *best { "first best" } else { "first" };
                format!(
                    "<td class=\"{class}\">{average}</td><td>{deviation}</td><td>{normalized}</td>"
                )
            });
        let cells: String = cells.collect();
        rows.push_str(&format!(
            "<tr><td class=\"name\">{}</td><td>{}</td><td>{}</td>{cells}</tr>\n",
            row.label, row.count, row.standalone_s
        ));
    }
    let units = "<th class=\"unit first\">avg [s]</th><th class=\"unit\">stddev</th>\
                 <th class=\"unit\">norm.</th>";
    format!(
        "<div class=\"wide\"><table class=\"dense\">\n<thead><tr><th class=\"name\" colspan=\"3\"></th>{}</tr>\n\
         <tr><th class=\"name\">query</th><th class=\"unit\">count</th>\
         <th class=\"unit\">alone [s]</th>{}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        engine_headers(reports, 3),
        units.repeat(reports.len())
    )
}
