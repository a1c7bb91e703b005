//! The claims of the papers, and whether they hold.

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
    /// The number of draws that give the same verdict alone, and of all draws; `None` if nothing random is involved.
    draws: Option<(usize, usize)>,
    why: String,
    /// Whether it is only about figures that were fitted to.
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

    /// Judges something that no claim of an experiment states: its place, its source, its text, and how it is measured.
    /// The expected values are this range.
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

    fn is_of(&self, tag: &str) -> bool {
        self.source.trim_start_matches('[').starts_with(tag)
    }

    /// The row in a table of a page from which the pages on experiments are in this directory. The place is written
    /// without this tag of the paper, and omitted if the row before has it.
    fn row(&self, tag: &str, directory: &str, same_place: bool) -> String {
        let place = self.source.trim_matches(['[', ']']).trim_start_matches(tag).trim();
        let link = format!("[{place}]({directory}{}.md)", self.experiment);
        let place = if same_place { String::new() } else { link };
        let verdict = match self.verdict {
            Verdict::Holds => "holds".to_owned(),
            other => format!("**{other}**"),
        };
        let cells = [&self.claim, &self.measured, &self.paper, &self.here].map(String::clone);
        let judgement = [verdict, self.draws(), self.why.clone()];
        row(std::iter::once(place).chain(cells).chain(judgement))
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

/// The smallest and the largest value.
fn span(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.as_slice() {
        [] => String::new(),
        [one] => number(*one),
        [least, .., most] => format!("{} to {}", number(*least), number(*most)),
    }
}

/// The papers.
pub(crate) const PAPERS: [(&str, &str); 3] = [
    ("CS04", "Cooperative Scans, 2004"),
    ("CS07", "Cooperative Scans in a DBMS, 2007"),
    ("CS11", "Cooperative Scans in VectorWise, 2011"),
];

const TITLES: [&str; 8] =
    ["in", "the paper says", "measured", "paper", "here", "", "draws", "why not"];
const TEXTS: [bool; 8] = [true, true, true, false, false, true, false, true];

/// The page on the claims of a paper, to stand beside those on the experiments.
pub(crate) fn write_paper(judged: &[Judged], (tag, name): (&str, &str)) -> String {
    let mut text = format!(
        "# {tag}: {name}\n\nThe verdicts on what `[{tag}]` claims; [the page on all papers](../reproduction.md) explains \
         the table. Written by a program.\n\n"
    );
    text += &head_over(&TITLES, &TEXTS);
    let mut last = ("", "");
    for claim in judged.iter().filter(|claim| claim.is_of(tag)) {
        let place = (claim.experiment.as_str(), claim.source.as_str());
        text += &claim.row(tag, "", place == last);
        last = place;
    }
    text
}

/// Writes the claims that do not hold, not even partly, in a table. The papers' pages have the others.
pub(crate) fn write_missed(judged: &[Judged]) -> String {
    let mut text = head_over(&TITLES, &TEXTS);
    for (tag, _) in PAPERS {
        for claim in judged.iter().filter(|claim| claim.is_of(tag)) {
            if claim.verdict == Verdict::Not {
                text += &claim.row("", "reproduction/", false);
            }
        }
    }
    text
}

/// The number of verdicts of each kind.
pub(crate) fn write_summary(judged: &[Judged]) -> String {
    let line = |name: String, counted: &dyn Fn(&&Judged) -> bool| {
        let counts = [Verdict::Holds, Verdict::Partly, Verdict::Not].map(|verdict| {
            let same = |claim: &&Judged| claim.verdict == verdict && counted(claim);
            judged.iter().filter(same).count().to_string()
        });
        row(std::iter::once(name).chain(counts))
    };
    let drawn: Vec<_> = judged.iter().filter_map(|claim| claim.draws).collect();
    let sure = drawn.iter().filter(|(same, all)| same == all).count();
    let mut text = head(&["claims", "hold", "partly", "not"], 1);
    for (tag, name) in PAPERS {
        let link = format!("[{tag}: {name}](reproduction/{}.md)", tag.to_lowercase());
        text += &line(link, &|claim| claim.is_of(tag));
    }
    text +=
        &line("of all, about normal only, to which machines were fitted".to_owned(), &|claim| {
            claim.calibration
        });
    text + &format!(
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
