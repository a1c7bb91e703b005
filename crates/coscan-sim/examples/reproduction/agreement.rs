//! The distances between our figures and the printed ones: worst first, and for fitted and predicted figures.

use coscan_sim::claim::{CLOSE, FAR};

use crate::format::{head, number, percent, row, shown};
use crate::measured::{Measured, Pair};

/// The number of figures in the list of the worst.
const WORST: usize = 15;

/// The disagreements, worst first.
pub(crate) fn write_disagreements(all: &[Measured]) -> String {
    let mut pairs: Vec<Pair<'_>> = all.iter().flat_map(Measured::pairs).collect();
    pairs.sort_by(|a, b| b.distance().total_cmp(&a.distance()));
    let far = pairs.iter().filter(|pair| pair.distance() > FAR).count();
    let mut text = format!(
        "{far} of {} printed figures are missed by more than a factor of {}. The {WORST} worst:\n\n",
        pairs.len(),
        number(FAR)
    );
    text += &head(&["in", "figure", "paper", "here", "here ÷ paper"], 2);
    for pair in pairs.iter().take(WORST) {
        let metric = pair.figure.metric;
        let values = [shown(metric, pair.figure.value), shown(metric, pair.ours)];
        let cells = [link(&pair.spec.name), pair.name()].into_iter().chain(values);
        text += &row(cells.chain([number(pair.ratio())]));
    }
    text += "\nBy experiment, worst first, and why as far as known:\n\n";
    let mut worst: Vec<(&Measured, f64)> = Vec::new();
    for experiment in all {
        let distance = experiment.pairs().map(|pair| pair.distance()).fold(1.0, f64::max);
        if distance > CLOSE {
            worst.push((experiment, distance));
        }
    }
    worst.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (experiment, distance) in worst {
        let (all, far) = (
            experiment.pairs().count(),
            experiment.pairs().filter(|pair| pair.distance() > CLOSE).count(),
        );
        text += &format!(
            "- **{}**: {far} of {all} figures more than a quarter away, the worst by a factor of {}. {}\n",
            link(&experiment.spec.name),
            number(distance),
            experiment.spec.remarks.join(" ")
        );
    }
    text
}

/// The fitted parameters, and the agreement of predicted figures.
pub(crate) fn write_fitted(all: &[Measured]) -> String {
    let mut text = String::new();
    for experiment in all.iter().filter(|experiment| !experiment.spec.fitted.is_empty()) {
        text += &format!(
            "- **{}**: {}\n",
            link(&experiment.spec.name),
            experiment.spec.fitted.join(" ")
        );
    }
    text += "\nThe others inherit these parameters and fit nothing. Distances from the printed figures:\n\n";
    let titles = ["", "figures", "within 10 %", "within a quarter", "within a factor of 2"];
    text += &head(&titles, 1);
    let all: Vec<Pair<'_>> = all.iter().flat_map(Measured::pairs).collect();
    let (fitted, predicted): (Vec<_>, Vec<_>) = all.iter().partition(|pair| pair.is_calibration());
    text += &tally("fitted: queries alone, and normal", &fitted);
    text += &tally("**predicted**: all other policies", &predicted);
    for policy in ["attach", "elevator", "predictive", "relevance-2004", "relevance-2007"] {
        let of: Vec<_> =
            predicted.iter().copied().filter(|pair| pair.figure.policy == policy).collect();
        text += &tally(policy, &of);
    }
    let whole: Vec<_> =
        predicted.iter().copied().filter(|pair| pair.figure.query.is_none()).collect();
    text += &tally("predicted, of whole runs", &whole);
    let kinds: Vec<_> =
        predicted.iter().copied().filter(|pair| pair.figure.query.is_some()).collect();
    text + &tally("predicted, of one kind of query", &kinds)
}

fn tally(name: &str, pairs: &[&Pair<'_>]) -> String {
    let within = |factor| pairs.iter().filter(|pair| pair.distance() <= factor).count();
    let parts = [1.1, CLOSE, FAR].map(|factor| percent(within(factor), pairs.len()));
    row([name.to_owned(), pairs.len().to_string()].into_iter().chain(parts))
}

fn link(experiment: &str) -> String {
    format!("[{experiment}](reproduction/{experiment}.md)")
}
