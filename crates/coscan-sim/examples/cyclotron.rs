//! The Data Cyclotron's experiments alone. `-- NAME…` prints some of them; `-- docs` writes the pages of all, with the
//! effect of parameters that are recalled or not stated, into a directory.

use std::path::Path;

use coscan_sim::cyclotron::{
    Cyclotron, CyclotronMetric, CyclotronSpec, find, names, report, run_cyclotron, verdicts,
};

const SEEDS: u64 = 3;
/// The experiment of which the parameters are varied.
const VARIED: &str = "dc-table5.3";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [directory] if Path::new(directory).is_dir() => {
            write_pages(&Path::new(directory).join("reproduction"))
        }
        [] => eprintln!(
            "name experiments ({}), or the directory of the documents: docs",
            names().collect::<Vec<_>>().join(", ")
        ),
        chosen => chosen.iter().for_each(|name| println!("{}", text(&spec(name)).0)),
    }
}

fn spec(name: &str) -> CyclotronSpec {
    find(name).expect("there is such an experiment").expect("its file is right")
}

fn text(spec: &CyclotronSpec) -> (String, [usize; 3]) {
    let results = spec.run(SEEDS);
    (report(spec, &results), verdicts(spec, &results))
}

fn write_pages(directory: &Path) {
    let mut overview = format!(
        "# DC: the Data Cyclotron\n\nThe verdicts on what chapter 5 of Gonçalves' thesis, `[DC]`, claims of its ring, by \
         experiment. The protocol of servers (`Circulate` of `coscan-ring`) runs unchanged on simulated nodes; \
         averages over {SEEDS} seeds. Some parameters were chosen after first runs were seen: \
         each page says which. Our copy of the thesis has no pictures, so claims are what its text and tables \
         state. A claim holds within a quarter of a printed figure, and partly within a factor of two; a claim about \
         several cases holds partly in half of them. TPC-H (Tables 5.6, 5.7), queries that travel, caching beforehand \
         (§5.5.2) and mixed racks (Figure 5.7) are not simulated. Thirteen parameters that are recalled or not stated are decreased and increased \
         by half for [Table 5.3](dc-table5.3.md); their effect on the other experiments is not known.\n\n\
         - **S1 to S6** are the thesis's scenarios. Each query reads 11 random columns of one table of 64 columns. A column consists of \
         2 (S1, S2), 3 (S3, S4) or 6 (S5, S6) *fragments* of 128 MB. In S1, S3 and S5 queries use only half of the columns, the *hot set*.\n\
         - A *lap* is one trip of a fragment round the ring. A *picker* is a slot in which a node runs a query. *X* is the number of \
         *eligible* requests: those that a query may have open at once.\n\
         - The *level of interest* of a fragment is the part of the nodes that took it on its last lap, and a fading part of its \
         earlier level. **LOIT** is the threshold below which the owner takes it off the ring.\n\
         - **Cluster 1** has 1.6 GB/s and 16 nodes at a switch, **Cluster 2** 2.0 GB/s in each direction and no jams.\n\n\
         Written by a program:\n\n\
         ```console\ncargo run --release -p coscan-sim --example cyclotron -- docs\n```\n\n\
         | experiment | hold | partly | not |\n| --- | --: | --: | --: |\n"
    );
    for name in names() {
        let spec = spec(name);
        let (mut page, [holds, partly, not]) = text(&spec);
        if name == VARIED {
            page += &sensitivity(&spec);
        }
        overview +=
            &format!("| [{name}: {}]({name}.md) | {holds} | {partly} | {not} |\n", spec.title);
        write(&directory.join(format!("{name}.md")), &page);
    }
    write(&directory.join("dc.md"), &overview);
}

#[allow(clippy::disallowed_methods)] // A page is a file.
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// Sets a parameter to a multiple of its value.
type Vary = fn(&mut Cyclotron, f64);

/// The parameters that are recalled or not stated, for which half and one and a half of the value make sense.
const PARAMETERS: [(&str, Vary); 13] = [
    ("buffers always left for transit", |it, by| {
        it.transit_buffers_min = times(it.transit_buffers_min, by).max(2)
    }),
    ("buffers always left for the application", |it, by| {
        it.application_buffers_min = times(it.application_buffers_min, by)
    }),
    ("time of a select", |it, by| it.queries.select_ns = (it.queries.select_ns as f64 * by) as u64),
    ("time of a join or the projection (fitted)", |it, by| {
        it.queries.operator_ns = (it.queries.operator_ns as f64 * by) as u64
    }),
    ("lowest threshold", |it, by| it.protocol.thresholds[0] *= by),
    ("middle threshold", |it, by| it.protocol.thresholds[1] *= by),
    ("highest threshold", |it, by| {
        it.protocol.thresholds[2] = (it.protocol.thresholds[2] * by).max(it.protocol.thresholds[1])
    }),
    ("high water mark, at most 1", |it, by| {
        it.protocol.high_water = (it.protocol.high_water * by).min(1.0)
    }),
    ("low water mark", |it, by| it.protocol.low_water *= by),
    ("laps before a resend", |it, by| {
        it.protocol.resend_laps = times(it.protocol.resend_laps as usize, by) as u32
    }),
    ("a lap until one was seen", |it, by| {
        it.protocol.first_lap_ns = (it.protocol.first_lap_ns as f64 * by) as u64
    }),
    ("reads at once at an owner", |it, by| {
        it.protocol.reads_max = times(it.protocol.reads_max, by)
    }),
    ("latency", |it, by| it.latency_ns = (it.latency_ns as f64 * by) as u64),
];

fn times(count: usize, by: f64) -> usize {
    (count as f64 * by).round() as usize
}

/// The effect of each parameter on the response times of the cases that the thesis has.
fn sensitivity(spec: &CyclotronSpec) -> String {
    let metric = CyclotronMetric::ResponseS;
    let cases: Vec<_> =
        spec.cases.iter().filter(|case| spec.published(&case.name, metric).is_some()).collect();
    let mut text = "\n## The effect of what is recalled or not stated\n\nResponse times in seconds with half and with one \
                    and a half of a parameter, seed 1.\n\n"
        .to_owned();
    let titles: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    text += &format!(
        "| parameter | {} |\n| --- |{}\n",
        titles.join(" | "),
        " --: |".repeat(titles.len())
    );
    let response = |change: &dyn Fn(&mut Cyclotron), setup: &Cyclotron| {
        let mut setup = setup.clone();
        change(&mut setup);
        let value = metric.value(&setup, &run_cyclotron(&setup, 1));
        value.map_or("blocked".to_owned(), |seconds| format!("{seconds:.1}"))
    };
    let mut line = |name: &str, cells: Vec<String>| {
        text += &format!("| {name} | {} |\n", cells.join(" | "));
    };
    line("as above", cases.iter().map(|case| response(&|_| {}, &case.setup)).collect());
    for (name, vary) in PARAMETERS {
        let both = |setup: &Cyclotron| {
            let at = |by: f64| response(&|it: &mut Cyclotron| vary(it, by), setup);
            format!("{}, {}", at(0.5), at(1.5))
        };
        line(name, cases.iter().map(|case| both(&case.setup)).collect());
    }
    let published = |it: &mut Cyclotron| it.protocol.keeps_requested = false;
    let name = "what was asked for late leaves the ring, as recalled";
    line(name, cases.iter().map(|case| response(&published, &case.setup)).collect());
    text
}
