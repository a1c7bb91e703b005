//! What the words of reports mean.

/// A policy in one sentence; `None` for those that have no name here.
pub(super) fn policy(name: &str) -> Option<&'static str> {
    let text = match name {
        "normal" => {
            "each query reads in order, one chunk ahead; what was used least recently leaves the pool"
        }
        "attach" => {
            "as normal, but a new query begins where a running one is, and reads what it missed later"
        }
        "predictive" => {
            "each query reads in order; what will be used latest, as far as running queries tell, leaves the pool"
        }
        name if name.starts_with("predictive+") => {
            "predictive, with some of what the thesis proposes for it switched on"
        }
        "elevator" => "one cursor goes through the table for all; the fast wait for the slow",
        "relevance-2004" => "reads what most starved queries want, drops what fewest want (2004)",
        "relevance-2007" => {
            "serves starved queries, those with little left first; drops what helps least (2007)"
        }
        "relevance" => "the same idea with what coscan adds to it; coscan's default",
        _ => return None,
    };
    Some(text)
}

/// What is measured.
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
