//! Scratch.
#![allow(missing_docs, clippy::all)]
fn main() {
    use coscan_ring::CirculateConfig;
    use coscan_sim::cyclotron::*;
    let args: Vec<f64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (partitions, columns, x, pickers, cluster) =
        (args[0] as usize, args[1] as usize, args[2] as usize, args[3] as usize, args[4] as usize);
    let op = args[5];
    let setup = Cyclotron {
        switches: if cluster == 1 { vec![9, 7, 16] } else { vec![16, 16] },
        link_bytes_per_second: if cluster == 1 { 1_300_000_000 } else { 2_000_000_000 },
        crossing_bytes_per_second: if cluster == 1 { 900_000_000 } else { 2_000_000_000 },
        latency_ns: 6_000,
        ownership: Ownership::First(16),
        disk_bytes_per_second: if cluster == 1 { 200_000_000 } else { 145_000_000 },
        buffers: 64,
        transit_buffers_min: args.get(6).map_or(2, |a| *a as usize),
        application_buffers_min: 16,
        workers: 7,
        protocol: CirculateConfig {
            patience_ns: u64::MAX,
            first_lap_ns: (std::env::var("FIRST").map_or(10.0, |v| v.parse::<f64>().unwrap()) * 1e9)
                as u64,
            keeps_requested: std::env::var("KEEP").is_ok(),
            thresholds: [std::env::var("LOIT").map_or(0.1, |v| v.parse().unwrap()), 0.6, 1.1],
            ..CirculateConfig::default()
        },
        queries: Queries {
            count: 1024,
            columns,
            partitions,
            fragment_bytes: 128_000_000,
            columns_per_query: 11,
            joins: 4,
            projected: 3,
            kept: (0.7, 0.9),
            eligible: x,
            pickers,
            select_ns: 100_000_000,
            operator_ns: (op * 1e9) as u64,
        },
    };
    let start = std::time::Instant::now();
    let o = run_cyclotron(&setup, 1);
    println!(
        "S p={partitions} c={columns} X={x} pick={pickers}: response {:.2} q/s {:.3} total {:.0} blocked {:?} n {} hops {} taken {} reads {} msgs {} thr {} GB/s {:.2}..{:.2} cpu {:?}",
        o.response_s(None),
        o.queries_per_second(),
        o.total_ns as f64 / 1e9,
        o.blocked,
        o.queries.len(),
        o.hops,
        o.taken,
        o.reads,
        o.messages,
        o.threshold_max,
        o.bytes_per_second.iter().cloned().fold(f64::MAX, f64::min) / 1e9,
        o.bytes_per_second.iter().cloned().fold(0.0, f64::max) / 1e9,
        start.elapsed()
    );
    if args.len() > 7 {
        for n in 0..setup.nodes() {
            print!("{:.1} ", o.response_s(Some(n)));
        }
        println!();
    }
}
