//! The results of all statements.

use crate::engine_tests::files::Statement;
use crate::engine_tests::{Variant, known};

/// The maximum number of rows of an answer that a difference shows.
const ROWS_SHOWN: usize = 8;

/// The answer of an engine to a statement.
#[derive(Debug)]
pub(crate) enum Answer {
    Rows(Vec<String>),
    /// An error, or worse.
    Refused(String),
}

/// Counts of statements, and those whose answers differ.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    statements: usize,
    plans: usize,
    both_answer: usize,
    both_refuse: usize,
    /// The number of answers with the same rows, in another order among rows that the query sorts alike.
    ties: usize,
    differences: Vec<Difference>,
}

#[derive(Debug)]
struct Difference {
    place: String,
    sql: String,
    what: String,
}

impl Summary {
    pub(crate) const HEAD: &'static str = "| rows of a row group | pool | statements | plans, left out | refused by both | \
         answered by both | other order of ties | differ as listed | differ |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

    pub(crate) fn add(&mut self, statement: &Statement, expected: Answer, actual: Answer) {
        self.statements += 1;
        if statement.is_about_plans() {
            self.plans += 1;
            return;
        }
        let what = match (expected, actual) {
            (Answer::Refused(_), Answer::Refused(_)) => {
                self.both_refuse += 1;
                return;
            }
            (Answer::Rows(_), Answer::Refused(error)) => format!("only coscan refuses it: {error}"),
            (Answer::Refused(error), Answer::Rows(_)) => {
                format!("only the plain engine refuses it: {error}")
            }
            (Answer::Rows(mut expected), Answer::Rows(mut actual)) => {
                self.both_answer += 1;
                if expected == actual {
                    return;
                }
                expected.sort_unstable();
                actual.sort_unstable();
                if expected == actual {
                    self.ties += usize::from(statement.is_ordered());
                    return;
                }
                let first = |rows: &[String]| rows[..rows.len().min(ROWS_SHOWN)].join(" | ");
                format!("plain: {}\n  coscan: {}", first(&expected), first(&actual))
            }
        };
        let (place, sql) = (statement.place.clone(), statement.sql.clone());
        self.differences.push(Difference { place, sql, what });
    }

    /// The sum of both.
    pub(crate) fn with(mut self, other: Self) -> Self {
        self.statements += other.statements;
        self.plans += other.plans;
        self.both_answer += other.both_answer;
        self.both_refuse += other.both_refuse;
        self.ties += other.ties;
        self.differences.extend(other.differences);
        self
    }

    /// The line of a table below [`HEAD`](Self::HEAD).
    pub(crate) fn line(&self, variant: &Variant) -> String {
        let listed = self.differences.iter().filter(|one| known::reason(&one.place).is_some());
        let listed = listed.count();
        format!(
            "| {} | {} MiB | {} | {} | {} | {} | {} | {listed} | {} |",
            variant.group_rows,
            variant.pool_bytes >> 20,
            self.statements,
            self.plans,
            self.both_refuse,
            self.both_answer,
            self.ties,
            self.differences.len() - listed,
        )
    }

    /// The differences without a known reason.
    pub(crate) fn unexplained(&self, variant: &Variant) -> Vec<String> {
        let unknown = self.differences.iter().filter(|one| known::reason(&one.place).is_none());
        let text = |one: &Difference| {
            format!(
                "{} ({variant:?})\n  {}\n  {}",
                one.place,
                one.sql.replace('\n', "\n  "),
                one.what
            )
        };
        unknown.map(text).collect()
    }
}
