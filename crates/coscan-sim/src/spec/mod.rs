//! Workloads and machines as people write them: a file in TOML.
//!
//! [`Spec::parse`] reads it and reports what is wrong with it. A [`Case`] with a seed gives a [`Workload`]. Each of the
//! files in `experiments/` is an example; `docs/workloads.md` explains the form.

pub(crate) mod claims;
mod document;
pub(crate) mod error;
mod extends;
mod index_rows;
mod machine;
mod parameters;
mod quantities;
mod queries;
mod streams;
mod sweep;
mod tables;
pub(crate) mod units;

use self::document::Document;
use self::queries::{Template, Templates};
use self::streams::StreamGroup;
use self::tables::BuiltTables;
use crate::claim::{Claim, PaperFigure};
use crate::machine::Machine;
use crate::random::Random;
use crate::workload::Workload;

pub use self::error::SpecError;

/// A workload file: one or more cases, and published results.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// One line about its content.
    pub title: String,
    /// The source, such as `[CS07 §5.2, Table 2]`; empty if there is none.
    pub source: String,
    /// Assumptions where the source is silent.
    pub assumed: Vec<String>,
    /// Parameters fitted to figures of the source, and the figures.
    pub fitted: Vec<String>,
    /// The reasons why results may differ from the source's.
    pub remarks: Vec<String>,
    /// The machine, tables, queries and streams as the file has them: the parts and their content.
    pub parameters: Vec<(String, String)>,
    /// The sweeps.
    pub sweeps: Vec<Sweep>,
    /// The cases: one, or one for each combination of the sweeps' values, those of the last sweep varying fastest.
    pub cases: Vec<Case>,
    /// Published results.
    pub paper: Vec<PaperFigure>,
    /// Claims of the source about its results.
    pub claims: Vec<Claim>,
}

/// A key that differs between cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Its name in reports, with its unit.
    pub name: String,
    /// The names of its values.
    pub values: Vec<String>,
}

/// A machine and a workload whose random parts follow from a seed.
#[derive(Clone, Debug)]
pub struct Case {
    /// The values that a sweep gave it, joined with `-`; empty if there is no sweep.
    pub name: String,
    /// The machine.
    pub machine: Machine,
    work: Work,
}

/// The source of the workload of a case.
#[derive(Clone, Debug)]
enum Work {
    /// The workload is drawn as a file describes.
    Drawn {
        tables: BuiltTables,
        templates: Templates,
        groups: Vec<StreamGroup>,
        pool_bytes: u64,
        pool_changes: Vec<(coscan_core::Time, u64)>,
    },
    /// The workload is known, as that of a recorded run.
    Known(Workload),
}

impl Spec {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is not TOML, has unknown keys, lacks some, or its parts contradict each other. The text names the place
    /// and the remedy.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let form = |error: toml::de::Error| SpecError::Form(error.to_string());
        let written: toml::Table = toml::from_str(text).map_err(form)?;
        let plain = extends::extended(written)?;
        let document: Document = match plain.contains_key(extends::KEY) {
            true => plain.clone().try_into().map_err(form)?,
            false => toml::from_str(text).map_err(form)?, // Its errors name the line.
        };
        let mut sweeps = Vec::new();
        for form in &document.sweep {
            let name = form.name.clone().unwrap_or_else(|| form.key.clone());
            let values = sweep::named_values(form)?;
            sweeps.push(Sweep { name, values: values.into_iter().map(|(name, _)| name).collect() });
        }
        let mut cases = Vec::new();
        for variant in sweep::variants(&plain, &document.sweep)? {
            let case = variant.document.try_into().map_err(form).and_then(|form| Case::new(&form));
            let named = |error| match variant.name.as_str() {
                "" => error,
                name => SpecError::Case { case: name.to_owned(), error: Box::new(error) },
            };
            cases.push(Case { name: variant.name.clone(), ..case.map_err(named)? });
        }
        let mut spec = Self {
            name: document.name,
            title: document.title,
            source: document.source,
            assumed: document.assumed,
            fitted: document.fitted,
            remarks: document.remarks,
            parameters: parameters::parameters(&plain),
            sweeps,
            cases,
            paper: Vec::new(),
            claims: Vec::new(),
        };
        document.paper.iter().try_for_each(|form| spec.add_figures(form))?;
        let cases: Vec<_> = spec.cases.iter().map(|case| case.name.as_str()).collect();
        let claims = document
            .claim
            .iter()
            .map(|form| claims::build(form, &spec.source, &cases, &spec.paper, claims::metric));
        spec.claims = claims.collect::<Result<_, _>>()?;
        Ok(spec)
    }

    fn add_figures(&mut self, form: &document::PaperForm) -> Result<(), SpecError> {
        self.check_case("paper.case", &form.case)?;
        for (name, figure) in &form.figures {
            self.paper.push(PaperFigure {
                case: form.case.clone(),
                policy: form.policy.clone(),
                query: form.query.clone(),
                metric: claims::metric(&format!("paper.{name}"), name)?,
                value: figure.0,
                ideal: form.ideal,
            });
        }
        Ok(())
    }

    fn check_case(&self, key: &str, name: &str) -> Result<(), SpecError> {
        if self.cases.iter().any(|case| case.name == name) {
            return Ok(());
        }
        let names: Vec<_> = self.cases.iter().map(|case| case.name.as_str()).collect();
        let problem = format!("there is no case `{name}`; choose from {}", names.join(", "));
        Err(error::wrong(key, problem))
    }
}

impl Case {
    fn new(document: &Document) -> Result<Self, SpecError> {
        let machine = machine::build(&document.machine)?;
        let clock = document.machine.clock;
        let tables = tables::build_all(&document.table, clock)?;
        let template = |(name, form): &(String, _)| Template::new(name, form, &tables.named, clock);
        let templates = document.query.iter().map(template);
        let templates = Templates(templates.collect::<Result<_, _>>()?);
        let groups = document.streams.iter();
        let groups = groups.map(|(name, form)| StreamGroup::new(name, form, &templates));
        let groups = groups.collect::<Result<_, _>>()?;
        let table_bytes = tables.tables.iter().map(tables::bytes).sum();
        let (pool_bytes, pool_changes) = machine::pool(&document.machine, table_bytes);
        let work = Work::Drawn { tables, templates, groups, pool_bytes, pool_changes };
        Ok(Self { name: String::new(), machine, work })
    }

    /// A case in which nothing is random.
    pub(crate) fn known(workload: Workload, machine: Machine) -> Self {
        Self { name: String::new(), machine, work: Work::Known(workload) }
    }

    /// The workload, with its random parts drawn from a seed.
    #[must_use]
    pub fn workload(&self, seed: u64) -> Workload {
        let (tables, templates, groups, pool_bytes, pool_changes) = match &self.work {
            Work::Known(workload) => return workload.clone(),
            Work::Drawn { tables, templates, groups, pool_bytes, pool_changes } => {
                (tables, templates, groups, *pool_bytes, pool_changes.clone())
            }
        };
        let mut random = Random::new(seed);
        let mut of_groups: Vec<_> = groups.iter().map(|_| random.fork()).collect();
        let streams = groups.iter().zip(&mut of_groups);
        let streams = streams
            .flat_map(|(group, group_random)| {
                group.streams(templates, group_random, &mut random.fork())
            })
            .chain(tables.checkpoints.iter().cloned())
            .collect();
        Workload {
            tables: tables.tables.clone(),
            streams,
            pool_bytes,
            pool_changes,
            table_changes: tables.changes.clone(),
        }
    }
}
