//! The files of experiments.

use std::collections::BTreeMap;

use coscan_ring::CirculateConfig;
use serde::Deserialize;

use super::experiment::{CIRCULATE, CyclotronCase, CyclotronSpec};
use super::metric::CyclotronMetric;
use super::setup::{Cyclotron, Ownership, Queries};
use crate::claim::PaperFigure;
use crate::spec::SpecError;
use crate::spec::claims::{self, ClaimForm};
use crate::spec::error::wrong;
use crate::spec::units::{Bytes, BytesPerSecond, Nanoseconds};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    title: String,
    source: String,
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(default)]
    assumed: Vec<String>,
    #[serde(default)]
    remarks: Vec<String>,
    /// Parameters of all cases.
    ring: toml::Table,
    #[serde(default)]
    case: Vec<toml::Table>,
    #[serde(default)]
    paper: Vec<Figures>,
    #[serde(default)]
    claim: Vec<ClaimForm>,
}

/// The parameters of a case: those of all cases, replaced by its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    name: String,
    switches: Vec<usize>,
    link: BytesPerSecond,
    crossing: BytesPerSecond,
    latency: Nanoseconds,
    /// The number of nodes that own everything; all if not given.
    owners: Option<usize>,
    disk: BytesPerSecond,
    buffers: usize,
    transit_buffers_min: usize,
    application_buffers_min: usize,
    workers: usize,
    keeps_requested: bool,
    first_lap: Nanoseconds,
    queries: usize,
    columns: usize,
    partitions: usize,
    fragment: Bytes,
    kept: (f64, f64),
    eligible: usize,
    pickers: usize,
    #[serde(default)]
    adapts_pickers: bool,
    select: Nanoseconds,
    operator: Nanoseconds,
}

#[derive(Debug, Deserialize)]
struct Figures {
    case: String,
    #[serde(flatten)]
    figures: BTreeMap<CyclotronMetric, f64>,
}

impl CyclotronSpec {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is wrong. The text says where.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let document: Document = toml::from_str(text).map_err(form)?;
        let case = |own: &toml::Table| {
            let mut table = document.ring.clone();
            table.extend(own.clone());
            let parameters: Parameters = toml::Value::Table(table).try_into().map_err(form)?;
            parameters.case()
        };
        let cases = document.case.iter().map(case).collect::<Result<Vec<_>, _>>()?;
        let named = |name: &String| match cases.iter().any(|case| case.name == *name) {
            true => Ok(()),
            false => Err(wrong("cases", format!("there is no case `{name}`"))),
        };
        document.paper.iter().try_for_each(|figures| named(&figures.case))?;
        let source = document.source;
        let paper: Vec<_> = document.paper.into_iter().flat_map(Figures::figures).collect();
        let names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
        let claims = document.claim.into_iter().map(|form| {
            let form = ClaimForm { policy: Some(CIRCULATE.to_owned()), ..form };
            claims::build(&form, &source, &names, &paper, metric)
        });
        Ok(Self {
            claims: claims.collect::<Result<_, _>>()?,
            name: document.name,
            title: document.title,
            source,
            fitted: document.fitted,
            assumed: document.assumed,
            remarks: document.remarks,
            paper,
            cases,
        })
    }
}

fn form(error: toml::de::Error) -> SpecError {
    SpecError::Form(error.to_string())
}

/// The metric of a name that stands at `key`.
fn metric(key: &str, name: &str) -> Result<CyclotronMetric, SpecError> {
    toml::Value::from(name)
        .try_into()
        .map_err(|error: toml::de::Error| wrong(key, error.to_string()))
}

impl Figures {
    fn figures(self) -> Vec<PaperFigure<CyclotronMetric>> {
        let figure = |(metric, value)| PaperFigure {
            case: self.case.clone(),
            policy: CIRCULATE.to_owned(),
            query: None,
            metric,
            value,
            ideal: false,
        };
        self.figures.iter().map(|(&metric, &value)| figure((metric, value))).collect()
    }
}

impl Parameters {
    fn case(self) -> Result<CyclotronCase, SpecError> {
        let others = self.transit_buffers_min + self.application_buffers_min;
        if self.transit_buffers_min < 2
            || self.application_buffers_min == 0
            || others > self.buffers
        {
            let problem = "transit needs two buffers, the application one, of those that there are";
            return Err(wrong(format!("case.{}.buffers", self.name), problem));
        }
        if self.switches.iter().any(|&nodes| nodes < 2) || self.switches.is_empty() {
            let problem = "a switch has at least two nodes";
            return Err(wrong(format!("case.{}.switches", self.name), problem));
        }
        let protocol = CirculateConfig {
            keeps_requested: self.keeps_requested,
            first_lap_ns: self.first_lap.0,
            patience_ns: u64::MAX,
            ..CirculateConfig::default()
        };
        let queries = Queries {
            count: self.queries,
            columns: self.columns,
            partitions: self.partitions,
            fragment_bytes: self.fragment.0 as u64,
            columns_per_query: 11,
            joins: 4,
            projected: 3,
            kept: self.kept,
            eligible: self.eligible,
            pickers: self.pickers,
            adapts_pickers: self.adapts_pickers,
            select_ns: self.select.0,
            operator_ns: self.operator.0,
        };
        let setup = Cyclotron {
            switches: self.switches,
            link_bytes_per_second: self.link.0 as u64,
            crossing_bytes_per_second: self.crossing.0 as u64,
            latency_ns: self.latency.0,
            ownership: self.owners.map_or(Ownership::Hash, Ownership::First),
            disk_bytes_per_second: self.disk.0 as u64,
            buffers: self.buffers,
            transit_buffers_min: self.transit_buffers_min,
            application_buffers_min: self.application_buffers_min,
            workers: self.workers,
            protocol,
            queries,
        };
        Ok(CyclotronCase { name: self.name, setup })
    }
}
