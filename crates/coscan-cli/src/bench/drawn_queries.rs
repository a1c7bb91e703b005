//! The arguments that say which queries are drawn.

use clap::Args;
use coscan_bench::workload::{ConstantChoice, Mix, Percent, StreamGroup};

/// The queries to draw.
#[derive(Debug, Args)]
pub(super) struct DrawnQueries {
    /// Kinds of queries, each letter equally likely: F is TPC-H Q6 (fast), S is Q1 (slow), O reads in order until a
    /// limit, P looks up one key. Or a name: cs11-6.6 has the four queries of CS11 Figure 6.6, joins of lineitem and
    /// orders (CMJ1, CMJ2) and scans of each (L1, O1); cs11-6.6-joins has the two joins
    #[arg(long, default_value = "FS")]
    pub(super) mix: Mix,
    /// Percentages of the table that queries read, each equally likely
    #[arg(long, default_value = "1,10,50,100", value_delimiter = ',')]
    ranges: Vec<Percent>,
    /// Constants in queries of kinds F and S: equal in all of a kind; tpch, drawn as TPC-H draws parameters; distinct, so
    /// that no two queries share a constant or an expression that has one; or N%, the percentage of distinct ones
    #[arg(long, default_value_t = ConstantChoice::Equal, value_name = "HOW")]
    pub(super) constants: ConstantChoice,
}

impl DrawnQueries {
    /// Streams of so many queries each.
    pub(super) fn group(&self, streams: usize, queries: usize) -> StreamGroup {
        StreamGroup::once(self.mix.clone(), self.ranges.clone(), streams, queries)
    }
}
