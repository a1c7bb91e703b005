//! Explanations of the words of reports.

/// A policy in one sentence; `None` for policies that have no name here.
pub(super) fn policy(name: &str) -> Option<&'static str> {
    let text = match name {
        "normal" => {
            "each query reads in order, one chunk ahead; the least recently used pages are evicted"
        }
        "attach" => {
            "as normal, but a new query begins where a running one is, and reads what it missed later"
        }
        "predictive" => {
            "each query reads in order; the pages whose estimated next use is furthest away are evicted"
        }
        name if name.starts_with("predictive+") => {
            "predictive, with some of the extensions that the thesis proposes"
        }
        "elevator" => {
            "one cursor moves through the table for all queries; fast ones wait for slow ones"
        }
        "relevance-2004" => "reads what most starved queries need, evicts what fewest need (2004)",
        "relevance-2007" => {
            "serves starved queries, those with little left first; evicts what helps least (2007)"
        }
        "relevance" => "relevance-2007 with coscan's extensions; the default",
        _ => return None,
    };
    Some(text)
}

/// The metrics in one sentence each.
pub(super) const MEASURES: [(&str, &str); 7] = [
    ("chunk", "the unit in which tables are read and handed to queries"),
    ("average stream time", "from the start of a stream to the end of its last query: throughput"),
    ("normalized latency", "the time of a query divided by its time alone with an empty pool"),
    ("longest wait", "the longest that any query waited for its next chunk: fairness"),
    ("I/O requests", "loads of a chunk, or of missing columns of one"),
    (
        "best victims",
        "what is read when always the page leaves the pool whose next use is furthest away (Belady's MIN), for \
         chunks handed out in the same order; only where all queries got them in order",
    ),
    (
        "lower bound",
        "bytes that any schedule has to read with this pool, even one that knows the future and lets queries wait",
    ),
];
