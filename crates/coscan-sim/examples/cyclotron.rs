//! The claims of `[DC]` alone, or some of its experiments by name: `-- NAME…`.

use coscan_sim::cyclotron::{find, names, report};

fn main() {
    let mut chosen: Vec<String> = std::env::args().skip(1).collect();
    if chosen.is_empty() {
        chosen = names().map(str::to_owned).collect();
    }
    for name in chosen {
        let spec = find(&name).expect("there is such an experiment").expect("its file is right");
        println!("{}", report(&spec, &spec.run(3)));
    }
}
