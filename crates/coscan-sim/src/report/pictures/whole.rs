//! Pictures of the totals of one case.

use crate::metric::Metric;
use crate::report::draw::numbers::decimal;
use crate::report::draw::style::Hue;
use crate::report::figures::bars::{self, Bar, ReferenceLine};
use crate::report::figures::groups::{self, Names, Series};
use crate::report::metric_names;
use crate::report::results::Results;

use super::Section;

/// Bytes read by each policy, and the lower bound for any schedule.
pub(super) fn bytes(results: &Results<'_>, case: &str) -> Section {
    let bars = results.policies().iter().enumerate().map(|(index, policy)| {
        let value = |metric| {
            results.value(case, policy, None, metric).map_or(0.0, |summary| summary.average)
        };
        let read = value(Metric::BytesRead);
        Bar {
            name: (*policy).to_owned(),
            hue: Hue::of_engine(policy, index),
            value: metric_names::scaled(Metric::BytesRead, read),
            text: format!("{} MB", metric_names::show(Metric::BytesRead, read)),
            note: format!("{}×", decimal(value(Metric::BytesToBound))),
            paper: results
                .paper(case, policy, None, Metric::BytesRead)
                .map(|paper| metric_names::scaled(Metric::BytesRead, paper)),
        }
    });
    let runs = results.runs().iter().filter(|run| run.prepared.case == case);
    let bounds: Vec<u64> = runs.map(|run| run.prepared.bytes_lower_bound).collect();
    let bound = bounds.iter().sum::<u64>() as f64 / bounds.len().max(1) as f64;
    let least = ReferenceLine {
        value: metric_names::scaled(Metric::BytesRead, bound),
        name: format!(
            "no schedule reads less: {} MB",
            metric_names::show(Metric::BytesRead, bound)
        ),
    };
    let bars: Vec<Bar> = bars.collect();
    let axis = metric_names::name(Metric::BytesRead);
    let caption = "For all queries together, and as a multiple of the lower bound: what any schedule has to read, even one \
                   that knows the future.";
    let figure = bars::figure("Bytes read per policy", axis, &bars, Some(&least));
    Section::one("Bytes read", caption.to_owned(), "bytes", figure)
}

/// The normalized latency of each kind of query.
pub(super) fn kinds(results: &Results<'_>, case: &str) -> Option<Section> {
    let kinds = results.kinds(case);
    if kinds.len() < 2 {
        return None;
    }
    let metric = Metric::NormalizedLatencyAvg;
    let series = results.policies().iter().enumerate().map(|(index, policy)| {
        let ours = |kind: &&str| results.value(case, policy, Some(kind), metric);
        let ratios = kinds.iter().map(|kind| ours(kind).map(|value| value.average)).collect();
        let paper =
            kinds.iter().map(|kind| results.paper(case, policy, Some(kind), metric)).collect();
        Series { name: (*policy).to_owned(), hue: Hue::of_engine(policy, index), ratios, paper }
    });
    let series: Vec<Series> = series.collect();
    let names = Names {
        title: "Latency per kind of query, divided by the time alone",
        upright: "latency ÷ time alone (logarithmic)",
        across: "kind of query, and how many percent of the table it reads",
    };
    let groups: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    let stated = series.iter().any(|series| series.paper.iter().any(Option::is_some));
    let dashes = if stated { " Dashes are the paper's." } else { "" };
    let caption = format!(
        "Average latency divided by the time alone with an empty pool: 1× is as fast as with the machine to itself. Shorter \
         is better.{dashes}"
    );
    let figure = groups::figure(names, &groups, &series);
    Some(Section::one("Latency per kind of query", caption, "latency", figure))
}
