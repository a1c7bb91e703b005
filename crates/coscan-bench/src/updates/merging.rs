//! The processor time of scans over changed rows, and how many chunks are taken from shared results.

use coscan_datafusion::SharedResults;

use crate::metrics::median;
use crate::process::cpu_time;
use crate::runner::EngineError;
use crate::updates::Opened;
use crate::updates::report::MergingReport;

/// Q1 and Q6 of TPC-H, with a mark for the table.
const QUERIES: [(&str, &str); 2] = [
    (
        "Q1",
        "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), \
         sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), \
         avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM {table} \
         WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus",
    ),
    (
        "Q6",
        "SELECT sum(l_extendedprice * l_discount) FROM {table} WHERE l_shipdate >= DATE '1994-01-01' \
         AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    ),
];

/// Parts of the rows that are changed: one in so many.
const ONE_IN: [u64; 3] = [1000, 100, 10];

const SHARE_NONE: &str = "SET coscan.share_results = false";
const SHARE: &str = "SET coscan.share_results = true";

/// Measures both queries over tables with changed rows, each beside the table at rest, in turn, without shared results. Then
/// counts the chunks of which a query over the changed table takes the result, and those of which the same query does again.
pub(super) async fn measure(
    opened: &Opened,
    rounds: usize,
    on_step: &dyn Fn(&str),
) -> Result<Vec<MergingReport>, EngineError> {
    share_before_changes(opened).await?;
    let mut reports = compare(opened, "at rest", 0.0, rounds).await?;
    let keys = opened.run("SELECT max(l_orderkey) FROM rest").await?;
    let keys = arrow::util::display::array_value_to_string(keys[0].column(0), 0)?.parse::<u64>()?;
    for one_in in ONE_IN {
        let spread = format!("(l_orderkey * 31 + l_linenumber * 17) % {one_in} = 3");
        let together = format!("l_orderkey <= {}", keys / one_in);
        for (kind, rows) in [("random", spread), ("clustered", together)] {
            on_step(&format!("queries over one in {one_in} rows changed, {kind}"));
            let update = format!(
                "UPDATE changed SET l_quantity = l_quantity + 1, l_discount = l_discount WHERE {rows}"
            );
            share_before_changes(opened).await?;
            opened.run(&update).await?;
            reports.extend(compare(opened, kind, 1.0 / one_in as f64, rounds).await?);
            opened.checkpoint("changed").await?;
        }
    }
    Ok(reports)
}

/// Publishes the results of the queries over the table before it is changed.
async fn share_before_changes(opened: &Opened) -> Result<(), EngineError> {
    opened.run(SHARE).await?;
    for (_, sql) in QUERIES {
        opened.run(&sql.replace("{table}", "changed")).await?;
    }
    Ok(())
}

/// Runs a query with shared results. Returns the number of chunks taken from them, and of those computed.
async fn taken(opened: &Opened, sql: &str) -> Result<(u64, u64), EngineError> {
    let before = SharedResults::of(&opened.manager);
    opened.run(sql).await?;
    let after = SharedResults::of(&opened.manager);
    let computed = |report: &SharedResults| report.chunks_published + report.chunks_refused;
    Ok((after.chunks_taken - before.chunks_taken, computed(&after) - computed(&before)))
}

async fn compare(
    opened: &Opened,
    kind: &str,
    share: f64,
    rounds: usize,
) -> Result<Vec<MergingReport>, EngineError> {
    let mut reports = Vec::new();
    for (query, sql) in QUERIES {
        let changed = sql.replace("{table}", "changed");
        opened.run(SHARE).await?;
        let (first, computed) = taken(opened, &changed).await?;
        let (again, _) = taken(opened, &changed).await?;
        opened.run(SHARE_NONE).await?;
        let mut seconds = [Vec::new(), Vec::new()];
        // The first round fills the caches.
        for round in 0..=rounds {
            for (table, seconds) in ["rest", "changed"].into_iter().zip(&mut seconds) {
                let before = cpu_time();
                opened.run(&sql.replace("{table}", table)).await?;
                if round > 0 {
                    seconds.push((cpu_time() - before).as_secs_f64());
                }
            }
        }
        let [at_rest_s, changed_s] = seconds.map(median);
        let chunks = (first + computed).max(1) as f64;
        reports.push(MergingReport {
            query: query.to_owned(),
            kind: kind.to_owned(),
            share,
            at_rest_s,
            changed_s,
            taken_first: first as f64 / chunks,
            taken_again: again as f64 / chunks,
        });
    }
    Ok(reports)
}
