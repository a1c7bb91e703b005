//! From `[streams.…]` to streams.

use coscan_core::{Order, Time};

use super::document::StreamsForm;
use super::error::{SpecError, wrong};
use super::quantities::check_percent;
use super::queries::Templates;
use super::units::InterarrivalTime;
use crate::random::Random;
use crate::workload::{Query, Stream};

/// Streams that are made the same way.
#[derive(Clone, Debug)]
pub(super) struct StreamGroup {
    count: usize,
    start_ns: u64,
    apart: InterarrivalTime,
    think: InterarrivalTime,
    in_order_percent: Option<f64>,
    version: Option<usize>,
    while_others_run: bool,
    content: Content,
}

/// The queries that the streams run.
#[derive(Clone, Debug)]
enum Content {
    /// These queries in each stream.
    Listed(Vec<String>),
    /// `count` queries of these names in each stream, each over one of these percentages of the table.
    Drawn { count: usize, from: Vec<String>, percent: Vec<f64> },
    /// All of these queries in each stream, in an order of its own. The queries of one list follow one another.
    Shuffled(Vec<Vec<String>>),
    /// These queries in all streams together, shuffled.
    Dealt(Vec<String>),
}

impl Content {
    /// All names of queries.
    fn names(&self) -> impl Iterator<Item = &str> {
        let lists: Vec<&[String]> = match self {
            Self::Listed(names) | Self::Dealt(names) => vec![names],
            Self::Drawn { from, .. } => vec![from],
            Self::Shuffled(lists) => lists.iter().map(Vec::as_slice).collect(),
        };
        lists.into_iter().flatten().map(String::as_str)
    }
}

impl StreamGroup {
    pub(super) fn new(
        name: &str,
        form: &StreamsForm,
        templates: &Templates,
    ) -> Result<Self, SpecError> {
        let key = format!("streams.{name}");
        let count = form.count.unwrap_or(1);
        if count == 0 {
            return Err(wrong(format!("{key}.count"), "write at least 1"));
        }
        let content = content(&key, form, templates)?;
        let version = form.version;
        if let Some(version) = version {
            let key = format!("{key}.version");
            content.names().try_for_each(|name| templates.check_version(&key, name, version))?;
        }
        let none = InterarrivalTime::Fixed(0);
        let (apart, think) = (form.apart.unwrap_or(none), form.think.unwrap_or(none));
        let in_order_percent = form.in_order_percent;
        if in_order_percent.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
            return Err(wrong(format!("{key}.in_order_percent"), "write 0 to 100"));
        }
        let while_others_run = form.while_others_run;
        let start_ns = form.start.0;
        let group = Self {
            count,
            start_ns,
            apart,
            think,
            in_order_percent,
            version,
            while_others_run,
            content,
        };
        Ok(group)
    }

    /// The streams. Which queries are in order, and which rows an index finds, is drawn from `more`, so that it changes
    /// nothing else.
    pub(super) fn streams(
        &self,
        templates: &Templates,
        random: &mut Random,
        more: &mut Random,
    ) -> Vec<Stream> {
        let mut names = self.names(random).into_iter();
        let mut start = Time(self.start_ns);
        let mut streams = Vec::with_capacity(self.count);
        for position in 0..self.count {
            if position > 0 {
                start = Time(start.0 + draw(self.apart, random));
            }
            let names = names.next().unwrap_or_default();
            let mut queries: Vec<Query> = Vec::with_capacity(names.len());
            for (name, percent) in names {
                let mut more = more.fork();
                let order = more.unit() * 100.0;
                let mut query = templates.query(&name, percent, random, &mut more);
                if let Some(percent) = self.in_order_percent {
                    query.order = if order < percent { Order::InOrder } else { Order::Any };
                }
                query.version = self.version;
                query.think_ns = if queries.is_empty() { 0 } else { draw(self.think, random) };
                queries.push(query);
            }
            streams.push(Stream { start, queries, while_others_run: self.while_others_run });
        }
        streams
    }

    /// The names of the queries of each stream, and the percentages that go with them.
    fn names(&self, random: &mut Random) -> Vec<Vec<(String, Option<f64>)>> {
        let plain = |names: &[String]| names.iter().map(|name| (name.clone(), None)).collect();
        match &self.content {
            Content::Listed(names) => vec![plain(names); self.count],
            Content::Drawn { count, from, percent } => {
                let mut one = || {
                    let name = random.choose(from).clone();
                    let percent = match percent.as_slice() {
                        [] => None,
                        some => Some(*random.choose(some)),
                    };
                    (name, percent)
                };
                (0..self.count).map(|_| (0..*count).map(|_| one()).collect()).collect()
            }
            Content::Shuffled(lists) => {
                let mut one = || {
                    let mut lists = lists.clone();
                    random.shuffle(&mut lists);
                    plain(&lists.concat())
                };
                (0..self.count).map(|_| one()).collect()
            }
            Content::Dealt(names) => {
                let mut names = names.clone();
                random.shuffle(&mut names);
                let (each, more) = (names.len() / self.count, names.len() % self.count);
                let mut rest = names.as_slice();
                let mut hand = |stream| {
                    let (hand, left) = rest.split_at(each + usize::from(stream < more));
                    rest = left;
                    plain(hand)
                };
                (0..self.count).map(&mut hand).collect()
            }
        }
    }
}

fn content(key: &str, form: &StreamsForm, templates: &Templates) -> Result<Content, SpecError> {
    let check_all = |what: &str, names: &[String]| {
        names.iter().try_for_each(|name| templates.check(&format!("{key}.{what}"), name))
    };
    if form.draw.is_none() && (form.from.is_some() || form.percent.is_some()) {
        return Err(wrong(
            key,
            "`from` and `percent` need `draw`: how many queries a stream draws",
        ));
    }
    match (&form.queries, form.draw, &form.shuffle, form.deal.as_slice()) {
        (Some(names), None, None, []) => {
            check_all("queries", names)?;
            Ok(Content::Listed(names.clone()))
        }
        (None, Some(count), None, []) => {
            let from = form.from.clone().unwrap_or_default();
            if from.is_empty() {
                let problem = "`draw` needs `from`: the names of queries to draw from";
                return Err(wrong(key, problem));
            }
            check_all("from", &from)?;
            let percent = form.percent.clone().unwrap_or_default();
            let percent_key = format!("{key}.percent");
            percent.iter().try_for_each(|&percent| check_percent(&percent_key, percent))?;
            Ok(Content::Drawn { count, from, percent })
        }
        (None, None, Some(lists), []) => {
            check_all("shuffle", &lists.concat())?;
            Ok(Content::Shuffled(lists.clone()))
        }
        (None, None, None, deal @ [_, ..]) => {
            let names = deal.iter().flat_map(|(name, count)| vec![name.clone(); *count]);
            let names: Vec<_> = names.collect();
            check_all("deal", &names)?;
            Ok(Content::Dealt(names))
        }
        _ => {
            let problem = "write one of `queries = [\"F-10\", …]`, `draw = 4` with `from = [\"F\", …]`, \
                           `shuffle = [[\"F-10\"], …]` and `deal = { F-10 = 3, … }`";
            Err(wrong(key, problem))
        }
    }
}

fn draw(gap: InterarrivalTime, random: &mut Random) -> u64 {
    match gap {
        InterarrivalTime::Fixed(ns) => ns,
        // An exponential draw; 1 - fraction is never 0.
        InterarrivalTime::Random(mean_ns) => (-(1.0 - random.unit()).ln() * mean_ns as f64) as u64,
    }
}
