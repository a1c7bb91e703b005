//! Pictures of an experiment of several cases.

use crate::metric::Metric;
use crate::report::draw::scale::Scale;
use crate::report::draw::style::Hue;
use crate::report::figures::curves::{self, Axes, Curve, Point};
use crate::report::figures::scatter;
use crate::report::metric_names;
use crate::report::results::Results;
use crate::report::tables::metrics_of_cases;
use crate::spec::Sweep;

use super::{Picture, Section, file_name};

/// The least number of points of a curve.
const POINTS_MIN: usize = 3;

/// Curves over the last sweep if its values are numbers, and points by throughput and latency if they are not.
pub(super) fn sections(results: &Results<'_>) -> Vec<Section> {
    let Some(last) = results.spec().sweeps.last() else { return Vec::new() };
    let numbers: Option<Vec<f64>> = last.values.iter().map(|value| number(value)).collect();
    match numbers {
        Some(numbers) if numbers.len() >= POINTS_MIN => metrics_of_cases(results)
            .into_iter()
            .map(|metric| curves(results, last, &numbers, metric))
            .collect(),
        _ => points(results).into_iter().collect(),
    }
}

/// The number that a text begins with: 12.5 of `12.5 %`.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

/// One picture for each combination of the values of the other sweeps.
fn curves(results: &Results<'_>, last: &Sweep, numbers: &[f64], metric: Metric) -> Section {
    // If values lie ever further apart, their ratios are what counts.
    let doubles = numbers.windows(2).all(|pair| pair[0] > 0.0 && pair[1] >= 1.5 * pair[0]);
    let across_scale = if doubles { Scale::Logarithmic } else { Scale::Linear };
    let cases: Vec<&str> = results.cases().collect();
    let others = match results.spec().sweeps.split_last() {
        Some((_, others)) => others.iter().map(|sweep| sweep.name.as_str()).collect(),
        None => Vec::new(),
    }
    .join(" × ");
    let pictures = cases.chunks(numbers.len()).map(|cases| {
        let name = cases[0].strip_suffix(last.values[0].as_str()).unwrap_or(cases[0]);
        let name = name.trim_end_matches('-');
        let title = if name.is_empty() { String::new() } else { format!("{others}: {name}") };
        let axes = Axes {
            title,
            across: last.name.clone(),
            across_scale,
            upright: metric_names::name(metric).to_owned(),
            upright_scale: Scale::Linear,
            unit: metric_names::unit(metric).to_owned(),
        };
        let policies = results.policies().iter().enumerate();
        let curves: Vec<Curve> =
            policies.map(|policy| curve(results, policy, cases, numbers, metric)).collect();
        let file_name = file_name(&[metric.name(), name]);
        Picture { file_name, figure: curves::figure(&axes, &curves) }
    });
    let seeds = results.seeds().len();
    let spread = if seeds > 1 { " Bands reach from the lowest to the highest seed." } else { "" };
    let better = if metric_names::lower_is_better(metric) { " Lower is better." } else { "" };
    Section {
        title: capitalized(metric_names::name(metric)),
        caption: format!("Against {}.{better}{spread}", last.name),
        pictures: pictures.collect(),
    }
}

fn curve(
    results: &Results<'_>,
    (index, policy): (usize, &&str),
    cases: &[&str],
    numbers: &[f64],
    metric: Metric,
) -> Curve {
    let scaled = |value| metric_names::scaled(metric, value);
    let points = cases.iter().zip(numbers).filter_map(|(case, &across)| {
        let value = results.value(case, policy, None, metric)?;
        let spread =
            (results.seeds().len() > 1).then(|| (scaled(value.ends.0), scaled(value.ends.1)));
        Some(Point { across, upright: scaled(value.average), spread })
    });
    let paper = cases.iter().zip(numbers).filter_map(|(case, &across)| {
        Some((across, scaled(results.paper(case, policy, None, metric)?)))
    });
    Curve {
        name: (*policy).to_owned(),
        hue: Hue::of_engine(policy, index),
        points: points.collect(),
        paper: paper.collect(),
    }
}

/// Every case of every policy relative to `relevance`, or the last policy, in that case.
fn points(results: &Results<'_>) -> Option<Section> {
    let policies = results.policies();
    let reference = policies.iter().position(|policy| *policy == "relevance");
    let reference = reference.or(policies.len().checked_sub(1))?;
    let reference_name = policies[reference];
    let ratio = |case: &str, policy: &str, metric| {
        let value = |policy| Some(results.value(case, policy, None, metric)?.average);
        Some(value(policy)? / value(reference_name).filter(|value| *value > 0.0)?)
    };
    let others = policies.iter().enumerate().filter(|(index, _)| *index != reference);
    let series = others.map(|(index, policy)| {
        let points = results.cases().filter_map(|case| {
            Some(scatter::Point {
                label: case.to_owned(),
                across: ratio(case, policy, Metric::NormalizedLatencyAvg)?,
                upright: ratio(case, policy, Metric::StreamAvg)?,
            })
        });
        let points = points.collect();
        scatter::Series { name: (*policy).to_owned(), hue: Hue::of_engine(policy, index), points }
    });
    let axes = scatter::Axes {
        title: format!("Policies against {reference_name}"),
        across: format!("normalized latency ÷ {reference_name}'s"),
        upright: format!("stream time ÷ {reference_name}'s"),
        reference: (Hue::of_engine(reference_name, reference), reference_name.to_owned()),
    };
    let caption = format!(
        "Every point is a case under one policy, relative to the same case under {reference_name}, which is at (1, 1). \
         Further right: queries wait longer, compared with the time that they take alone. Higher: streams take longer. Left \
         of and below (1, 1) is better than {reference_name}."
    );
    let title = format!("Throughput and latency, against {reference_name}");
    let figure = scatter::figure(&axes, &series.collect::<Vec<_>>());
    Some(Section::one(&title, caption, "points", figure))
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}
