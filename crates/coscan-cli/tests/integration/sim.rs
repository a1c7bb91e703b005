//! `coscan sim`, run by its command line.

#[cfg(unix)]
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::program::{self, run};

const EXAMPLE: &str = include_str!("../../src/sim/example.toml");
const EXAMPLE_OUTPUT: &str = include_str!("../../src/sim/example.txt");

fn stdout(arguments: &[&str]) -> String {
    program::stdout(&run(arguments))
}

/// Returns the error output of a failed run, which prints nothing else.
fn failure(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.stdout.is_empty(), "{output:?}");
    program::failure(&output)
}

#[test]
fn the_papers_experiments_are_listed_and_can_be_copied_and_changed() {
    let list = stdout(&["sim", "list"]);
    assert!(list.lines().count() >= 10, "{list}");
    let line = list.lines().find(|line| line.starts_with("cs07-table2 ")).unwrap();
    assert!(line.contains("[CS07 §5.2, Table 2]") && line.contains("16 streams"), "{line}");

    let directory = TempDir::new().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, stdout(&["sim", "show", "cs04-figure4"])).unwrap();
    let of_file = stdout(&["sim", "run", file.to_str().unwrap(), "--policies", "attach,elevator"]);
    let of_name = stdout(&["sim", "run", "cs04-figure4", "--policies", "attach,elevator"]);
    assert_eq!(of_file, of_name);
    assert!(of_name.contains("attach") && !of_name.contains("normal "), "{of_name}");
}

#[test]
fn help_shows_a_file_and_what_it_really_gives() {
    let help = stdout(&["sim", "run", "--help"]);
    assert!(
        help.contains("[machine.disk.seek-transfer]") && help.contains(EXAMPLE_OUTPUT),
        "{help}"
    );
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, EXAMPLE).unwrap();
    let shown = stdout(&["sim", "run", file.to_str().unwrap(), "--policies", "normal,relevance"]);
    assert_eq!(shown, EXAMPLE_OUTPUT, "put what is printed now into src/sim/example.txt");
}

#[test]
fn a_run_writes_json_a_page_and_pictures() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (json, page, pictures) = (path("runs.json"), path("page.html"), path("pictures"));
    let run = ["sim", "run", "cs04-figure3", "--policies", "normal,attach", "--seeds", "2"];
    let files = ["--json", &json, "--html", &page, "--svg", &pictures];
    let shown = stdout(&[&run[..], &files[..]].concat());
    assert!(shown.contains("Averages over 2 seeds."), "{shown}");

    let runs = program::json(&json);
    assert_eq!(runs["experiment"], "cs04-figure3");
    let named: Vec<(&str, u64)> = runs["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["policy"].as_str().unwrap(), run["seed"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("normal", 1), ("attach", 1), ("normal", 2), ("attach", 2)]);
    assert!(std::fs::read_to_string(&page).unwrap().contains("<svg"));
    let timeline = format!("{pictures}/timeline-attach.svg");
    assert!(std::fs::read_to_string(&timeline).unwrap().starts_with("<svg "));
}

#[test]
fn the_same_seeds_give_the_same_results_however_threads_run() {
    let run = || stdout(&["sim", "run", "cs07-figure5", "--policies", "elevator", "--seeds", "2"]);
    assert_eq!(run(), run());
}

#[test]
fn wrong_input_is_named_with_what_to_write_instead() {
    let unknown = failure(&["sim", "run", "cs07-tabel2"]);
    assert!(unknown.contains("`cs07-table2`") && unknown.contains("coscan sim list"), "{unknown}");
    assert!(failure(&["sim", "show", "cs04-figure33"]).contains("`cs04-figure3`"));
    assert!(failure(&["sim", "run", "absent.toml"]).contains("absent.toml"));
    assert!(failure(&["sim", "run", "cs07-table2", "--policies", "fair"]).contains("elevator"));
    assert!(failure(&["sim", "run", "cs07-table2", "--seeds", "0"]).contains("1..=100000"));

    let directory = TempDir::new().unwrap();
    let file = directory.path().join("wrong.toml");
    let path = file.to_str().unwrap();
    for (right, wrong, named) in [
        ("cores = 4", "cores = \"many\"", "line 5"),
        ("cores = 4", "coers = 4", "coers"),
        ("pool = \"1 GB\"", "pool = \"1 parsec\"", "parsec"),
        ("from = [\"report\"]", "from = [\"rapport\"]", "rapport"),
    ] {
        assert!(EXAMPLE.contains(right));
        std::fs::write(&file, EXAMPLE.replacen(right, wrong, 1)).unwrap();
        let said = failure(&["sim", "run", path]);
        assert!(said.contains("wrong.toml") && said.contains(named), "{wrong}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_a_long_run() {
    use std::os::unix::process::ExitStatusExt;

    let mut child = program::coscan()
        .args(["sim", "run", "cs07-figure5", "--seeds", "100000"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A signal that arrives before the command listens also ends the process, so signals are sent
    // until it has ended.
    while child.try_wait().unwrap().is_none() {
        let pid = child.id().to_string();
        Command::new("kill").args(["-INT", &pid]).stderr(Stdio::null()).status().unwrap();
    }
    let status = child.wait().unwrap();
    assert!(status.code() == Some(130) || status.signal() == Some(2), "{status}");
}
