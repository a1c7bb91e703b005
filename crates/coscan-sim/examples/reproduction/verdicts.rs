//! What the papers claim, and whether it holds.

use std::ops::RangeInclusive;

use coscan_sim::claim::{Claim, Criterion, Judgement, Measure, Verdict};

use crate::format::{head, head_over, number, row, title};
use crate::measured::Measured;

/// A claim that was judged.
pub(crate) struct Judged {
    /// The name of its experiment.
    pub(crate) experiment: String,
    pub(crate) claim: String,
    pub(crate) source: String,
    measured: String,
    paper: String,
    here: String,
    pub(crate) verdict: Verdict,
    /// Draws that give the same verdict alone, and all draws; none of what nothing random enters.
    draws: Option<(usize, usize)>,
    why: String,
    /// Whether it is about nothing but what was fitted to.
    calibration: bool,
}

impl Judged {
    fn new(experiment: &Measured, claim: &Claim) -> Self {
        let (spec, judgement) = (&experiment.spec, experiment.judge(claim));
        let draws = experiment.judge_draws(claim);
        let same = draws.iter().filter(|draw| draw.verdict == judgement.verdict).count();
        let held = judgement.verdict == Verdict::Holds;
        let why = match &claim.why {
            _ if held => "",
            Some(why) => why,
            None => "Not explained.",
        };
        Self {
            experiment: spec.name.clone(),
            claim: claim.text.clone(),
            source: claim.source.clone(),
            measured: measured(claim),
            paper: paper(claim, &judgement),
            here: here(&judgement),
            verdict: judgement.verdict,
            draws: Some((same, draws.len())),
            why: why.to_owned(),
            calibration: claim.policies().all(|policy| policy == "normal"),
        }
    }

    /// Something that no claim of an experiment says: where, its source, what, how it is measured; asked for is this
    /// range.
    pub(crate) fn computed(
        [experiment, source, claim, measured]: [&str; 4],
        range: RangeInclusive<f64>,
        here: f64,
    ) -> Self {
        Self {
            experiment: experiment.to_owned(),
            claim: claim.to_owned(),
            source: source.to_owned(),
            measured: measured.to_owned(),
            paper: asked(&range),
            here: number(here),
            verdict: if range.contains(&here) { Verdict::Holds } else { Verdict::Not },
            draws: None,
            why: String::new(),
            calibration: false,
        }
    }

    /// The draws as text.
    fn draws(&self) -> String {
        self.draws.map_or(String::new(), |(same, all)| format!("{same} of {all}"))
    }
}

/// All claims of the experiments, in the order of their files.
pub(crate) fn judged(all: &[Measured]) -> Vec<Judged> {
    let of = |experiment: &Measured| {
        let judged = |claim| Judged::new(experiment, claim);
        experiment.spec.claims.iter().map(judged).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// The measure of a claim as text.
fn measured(claim: &Claim) -> String {
    let of = claim.query.as_ref().map_or(String::new(), |query| format!(" of {query}"));
    let what = match &claim.measure {
        Measure::Order(policies) => policies.join(" < "),
        Measure::Ratio { policy, to, to_case } => {
            let to = to.as_ref().map_or(String::new(), |to| format!(" ÷ {to}"));
            let case =
                to_case.as_ref().map_or(String::new(), |case| format!(", ÷ the same at {case}"));
            format!("{policy}{to}{case}")
        }
    };
    format!("{}{of}: {what}", title(claim.metric))
}

/// The figure of the paper, or the range that the claim requires.
fn paper(claim: &Claim, judgement: &Judgement) -> String {
    match (&claim.criterion, &claim.measure) {
        (Criterion::AsPrinted, _) => {
            span(judgement.comparisons.iter().filter_map(|comparison| comparison.paper))
        }
        (Criterion::Within(_), Measure::Order(_)) => "in order".to_owned(),
        (Criterion::Within(range), _) => asked(range),
    }
}

fn asked(range: &RangeInclusive<f64>) -> String {
    match (*range.start(), *range.end()) {
        (0.0, most) => format!("≤ {}", number(most)),
        (least, f64::INFINITY) => format!("≥ {}", number(least)),
        (least, most) => format!("{} to {}", number(least), number(most)),
    }
}

fn here(judgement: &Judgement) -> String {
    let all = &judgement.comparisons;
    let span = span(all.iter().map(|comparison| comparison.here));
    match all.iter().filter(|comparison| comparison.holds).count() {
        _ if all.len() == 1 => span,
        held => format!("{span}; {held} of {} cases", all.len()),
    }
}

/// The smallest and the largest.
fn span(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.as_slice() {
        [] => String::new(),
        [one] => number(*one),
        [least, .., most] => format!("{} to {}", number(*least), number(*most)),
    }
}

/// The tables, one for each paper.
pub(crate) fn write(judged: &[Judged]) -> String {
    let mut text = summary(judged);
    for (tag, name) in [
        ("CS04", "Cooperative Scans, 2004"),
        ("CS07", "Cooperative Scans in a DBMS, 2007"),
        ("CS11", "Cooperative Scans in VectorWise, 2011"),
    ] {
        text += &format!("\n### {tag}: {name}\n\n");
        text += &head_over(
            &["in", "the paper says", "measured", "paper", "here", "", "draws", "why not"],
            &[true, true, true, false, false, true, false, true],
        );
        let mut last = "";
        let of_paper =
            judged.iter().filter(|claim| claim.source.trim_start_matches('[').starts_with(tag));
        for claim in of_paper {
            let place = claim.source.trim_matches(['[', ']']).trim_start_matches(tag).trim();
            let link = format!("[{place}](reproduction/{}.md)", claim.experiment);
            let place = if last == claim.experiment { String::new() } else { link };
            last = &claim.experiment;
            let verdict = match claim.verdict {
                Verdict::Holds => "holds".to_owned(),
                other => format!("**{other}**"),
            };
            let cells =
                [&claim.claim, &claim.measured, &claim.paper, &claim.here].map(String::clone);
            let judgement = [verdict, claim.draws(), claim.why.clone()];
            text += &row(std::iter::once(place).chain(cells).chain(judgement));
        }
    }
    text
}

fn summary(judged: &[Judged]) -> String {
    let count = |verdict, calibration| {
        let same = |claim: &&Judged| claim.verdict == verdict && claim.calibration == calibration;
        judged.iter().filter(same).count()
    };
    let line = |name: &str, calibration| {
        let counts = [Verdict::Holds, Verdict::Partly, Verdict::Not]
            .map(|verdict| count(verdict, calibration));
        row(std::iter::once(name.to_owned()).chain(counts.map(|count| count.to_string())))
    };
    let drawn: Vec<_> = judged.iter().filter_map(|claim| claim.draws).collect();
    let sure = drawn.iter().filter(|(same, all)| same == all).count();
    head(&["claims", "hold", "partly", "not"], 1)
        + &line("about other policies, at least as one side of a ratio", false)
        + &line("about normal only, to which machines were fitted", true)
        + &format!(
            "\n{sure} of {} verdicts are the same in every draw; the others lie at a border.\n",
            drawn.len()
        )
}

/// The claims of one experiment, with the cases in which they do not hold.
pub(crate) fn of_experiment(experiment: &Measured) -> String {
    let mut text = String::new();
    for claim in &experiment.spec.claims {
        let judged = Judged::new(experiment, claim);
        if text.is_empty() {
            text += &head_over(
                &["the paper says", "measured", "paper", "here", "", "draws", "cases missed"],
                &[true, true, false, false, true, false, true],
            );
        }
        let missed =
            experiment.judge(claim).comparisons.into_iter().filter(|comparison| !comparison.holds);
        let missed: Vec<_> =
            missed.map(|comparison| comparison.case).filter(|case| !case.is_empty()).collect();
        let verdict = judged.verdict.to_string();
        let draws = judged.draws();
        let cells = [judged.claim, judged.measured, judged.paper, judged.here, verdict, draws];
        text += &row(cells.into_iter().chain([missed.join("; ")]));
    }
    if text.is_empty() { text } else { text + "\n" }
}
