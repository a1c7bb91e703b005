//! From `[query.…]` to queries.

use std::ops::Range;

use coscan_core::{ChunkIndex, Index, Order};

use super::document::QueryForm;
use super::error::{SpecError, wrong};
use super::index_rows;
use super::quantities::{check_percent, cost};
use super::tables::NamedTable;
use super::units::{Hertz, QueryName};
use crate::random::Random;
use crate::table::Table;
use crate::workload::Query;

/// The common properties of queries of one name.
#[derive(Clone, Debug)]
pub(super) struct Template {
    name: String,
    query: Query,
    table: Table,
    /// The number of versions that the table has at the start.
    versions: usize,
    place: Place,
    /// The number of rows of the place that an index finds; all of them are read if `None`.
    index_rows: Option<u64>,
}

/// The rows that a query reads.
#[derive(Clone, Debug)]
enum Place {
    /// These rows.
    Fixed(Vec<Range<u64>>),
    /// A part of the table, 1 for all of it, at a given or random position.
    Part { part: f64, begin: Option<f64> },
}

impl Template {
    pub(super) fn new(
        name: &str,
        form: &QueryForm,
        tables: &[NamedTable],
        clock: Option<Hertz>,
    ) -> Result<Self, SpecError> {
        let key = format!("query.{name}");
        let table = find_table(&key, form.table.as_deref(), tables)?;
        let place = place(&key, form, table)?;
        if form.workers == Some(0) {
            return Err(wrong(format!("{key}.workers"), "a scan has at least one worker"));
        }
        let query = Query {
            label: name.to_owned(),
            table: table.position,
            groups: table.groups(&key, form.columns.as_deref(), tables)?,
            version: None,
            rows: Vec::new(),
            selected: None,
            order: if form.in_order { Order::InOrder } else { Order::Any },
            workers: form.workers.unwrap_or(1),
            weight: form.weight.unwrap_or(1),
            computation: form.computation,
            cost: cost(&key, form.cost, (table.rows, table.table.rows_at_start()), clock)?,
            think_ns: 0,
            cancel_after_ns: form.cancel_after.map(|after| after.0),
            change: None,
        };
        if form.index_rows == Some(0) {
            return Err(wrong(format!("{key}.index_rows"), "an index finds at least one row"));
        }
        if form.index_rows.is_some() && table.changes {
            let problem = format!("leave it out: table `{}` changes", table.name);
            return Err(wrong(format!("{key}.index_rows"), problem));
        }
        let (name, versions, table) = (name.to_owned(), table.versions, table.table.clone());
        Ok(Self { name, query, table, versions, place, index_rows: form.index_rows })
    }

    /// A query of this template, over `percent` percent of the table if given. Rows that an index finds are
    /// drawn from `more`.
    fn query(&self, percent: Option<f64>, random: &mut Random, more: &mut Random) -> Query {
        let (rows, label) = match (&self.place, percent) {
            (Place::Fixed(rows), None) => (rows.clone(), self.name.clone()),
            (&Place::Part { part, begin }, None) => {
                (self.rows(part, begin, random), self.name.clone())
            }
            (place, Some(percent)) => {
                let begin = match place {
                    Place::Part { begin, .. } => *begin,
                    Place::Fixed(_) => None,
                };
                (self.rows(percent / 100.0, begin, random), format!("{}-{percent}", self.name))
            }
        };
        let query = Query { rows, label, ..self.query.clone() };
        match self.index_rows {
            Some(index_rows) => index_rows::pick(query, index_rows, &self.table.layout, more),
            None => query,
        }
    }

    fn rows(&self, part: f64, begin: Option<f64>, random: &mut Random) -> Vec<Range<u64>> {
        let all = self.table.rows_at_start();
        let count = ((all as f64 * part).round() as u64).clamp(1, all);
        let begin = begin.unwrap_or_else(|| random.unit());
        let start = match all - count {
            0 => 0,
            free => ((free + 1) as f64 * begin) as u64,
        };
        let start = start.min(all - count);
        let rows = start..start + count;
        vec![rows]
    }
}

/// The templates of a file.
#[derive(Clone, Debug)]
pub(super) struct Templates(pub(super) Vec<Template>);

impl Templates {
    /// Checks a name such as `F` or `F-10` that stands at `key`.
    pub(super) fn check(&self, key: &str, name: &str) -> Result<(), SpecError> {
        let (_, percent) = self.find(name).ok_or_else(|| {
            let names: Vec<_> = self.0.iter().map(|template| template.name.as_str()).collect();
            let problem = format!(
                "there is no query `{name}`; choose from {}, with `-10` behind it for 10 percent of the table",
                names.join(", ")
            );
            wrong(key, problem)
        })?;
        percent.map_or(Ok(()), |percent| check_percent(key, percent))
    }

    /// Checks that there is a version at the start of the table that a query of this checked name reads.
    pub(super) fn check_version(
        &self,
        key: &str,
        name: &str,
        version: usize,
    ) -> Result<(), SpecError> {
        let (template, _) = self.find(name).expect("names were checked");
        if version < template.versions {
            return Ok(());
        }
        let problem = format!(
            "at the start table `{}` has the versions 0 to {}; with `local_percent` it has one more",
            template.table.name,
            template.versions - 1
        );
        Err(wrong(key, problem))
    }

    /// A query of a checked name. `percent` is the part of the table if the name does not give one.
    pub(super) fn query(
        &self,
        name: &str,
        percent: Option<f64>,
        random: &mut Random,
        more: &mut Random,
    ) -> Query {
        let (template, named_percent) = self.find(name).expect("names were checked");
        template.query(named_percent.or(percent), random, more)
    }

    /// The template of a name, and the percentage in it. The longest name of a template takes precedence: one may be
    /// called `F-10`.
    fn find(&self, text: &str) -> Option<(&Template, Option<f64>)> {
        let named = |name: &str| self.0.iter().find(|template| template.name == name);
        if let Some(template) = named(text) {
            return Some((template, None));
        }
        let name = QueryName::of(text);
        Some((named(&name.template)?, Some(name.percent?)))
    }
}

fn find_table<'t>(
    key: &str,
    name: Option<&str>,
    tables: &'t [NamedTable],
) -> Result<&'t NamedTable, SpecError> {
    let names = || tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>().join(", ");
    match (name, tables) {
        (None, [table]) => Ok(table),
        (None, _) => {
            Err(wrong(key, format!("write which table it reads: `table` is one of {}", names())))
        }
        (Some(name), _) => tables.iter().find(|table| table.name == name).ok_or_else(|| {
            let problem = format!("there is no table `{name}`; choose from {}", names());
            wrong(format!("{key}.table"), problem)
        }),
    }
}

fn place(key: &str, form: &QueryForm, table: &NamedTable) -> Result<Place, SpecError> {
    let layout = &table.table.layout;
    let fixed = |ranges: &[[u64; 2]], end: u64, what: &str| {
        let bad = ranges.iter().find(|[first, after]| first >= after || *after > end);
        match bad {
            Some([first, after]) => Err(wrong(
                format!("{key}.{what}"),
                format!(
                    "[{first}, {after}]: write the first and the one after the last, of {end} {what}"
                ),
            )),
            None => Ok(ranges.iter().map(|&[first, after]| first..after).collect::<Vec<_>>()),
        }
    };
    match (&form.rows, &form.chunks, form.percent) {
        (Some(rows), None, None) => {
            let rows = fixed(rows, table.rows, "rows")?.into_iter();
            Ok(Place::Fixed(rows.map(|rows| table.rows_of_layout(rows)).collect()))
        }
        (None, Some(chunks), None) => {
            let ranges = fixed(chunks, table.table.initial_chunk_count as u64, "chunks")?;
            let row = |chunk: u64| layout.rows(ChunkIndex::from_usize(chunk as usize));
            let rows = ranges.iter().map(|range| row(range.start).start..row(range.end - 1).end);
            Ok(Place::Fixed(rows.collect()))
        }
        (None, None, percent) => {
            let percent = percent.unwrap_or(100.0);
            check_percent(&format!("{key}.percent"), percent)?;
            let begin = form.begin_percent.map(|begin| begin / 100.0);
            if begin.is_some_and(|begin| !(0.0..=1.0).contains(&begin)) {
                return Err(wrong(format!("{key}.begin_percent"), "write 0 to 100"));
            }
            Ok(Place::Part { part: percent / 100.0, begin })
        }
        _ => Err(wrong(key, "write only one of `percent`, `rows` and `chunks`")),
    }
}
