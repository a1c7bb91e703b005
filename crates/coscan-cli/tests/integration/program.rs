//! The program as a process.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The program without input.
pub(crate) fn coscan() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coscan"));
    command.stdin(Stdio::null());
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    coscan().args(arguments).output().unwrap()
}

/// The output of a run, which must succeed.
pub(crate) fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The errors of a run, which must fail.
pub(crate) fn failure(output: &Output) -> String {
    let text = stderr(output);
    assert!(!output.status.success(), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

#[cfg(unix)]
pub(crate) fn signal(process: &Child, name: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
}

pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

/// What a run wrote to a file.
pub(crate) fn json(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
