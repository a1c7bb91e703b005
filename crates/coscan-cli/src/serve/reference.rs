//! The reference of the server's settings is made from its flags, so that it says what the code does.

use std::fmt::Write as _;

use clap::{Arg, Args as _, Command};

use super::Flags;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

const INTRODUCTION: &str = "\
# Configuration of the server

`coscan serve` takes its settings from a TOML file (`--config FILE`) and from flags; flags take precedence.
`coscan serve --config FILE --check` lists everything that is wrong without starting. Tables, users and certificates are
explained on [the server's page](../crates/coscan-server/README.md), settings of a session in [EXPLAIN and
settings](explain.md). A setting `limits.wait_max` is `wait_max` in the section `[limits]` of the file. Bytes are written
with a unit (`'8GiB'`, `'500MB'`), times too (`'30s'`, `'5min'`).

This page is made from the program: `COSCAN_UPDATE=1 cargo test -p coscan-cli reference` writes it.
";

/// A setting, as the help of its flag describes it.
struct Setting {
    heading: String,
    key: String,
    flag: String,
    value: String,
    default: String,
    meaning: String,
}

impl Setting {
    fn of_flag(flag: &Arg) -> Option<Self> {
        let help = flag.get_long_help().or(flag.get_help())?.to_string().replace('\n', " ");
        let (text, key) = help.strip_suffix(']')?.rsplit_once(" [")?;
        let (meaning, default) = text.split_once("; by default ").unwrap_or((text, ""));
        let names = flag.get_value_names().unwrap_or_default();
        let takes_value = flag.get_action().takes_values();
        Some(Self {
            heading: flag.get_help_heading().unwrap_or("General").to_owned(),
            key: key.to_owned(),
            flag: flag.get_long()?.to_owned(),
            value: if takes_value { names.join(" ") } else { "true or false".to_owned() },
            default: default.to_owned(),
            meaning: meaning.replace('|', "\\|"),
        })
    }
}

fn page() -> String {
    let command = Flags::augment_args(Command::new("serve"));
    let settings: Vec<_> = command.get_arguments().filter_map(Setting::of_flag).collect();
    let mut headings: Vec<&str> = settings.iter().map(|setting| setting.heading.as_str()).collect();
    headings.dedup();
    let mut page = INTRODUCTION.to_owned();
    for heading in headings {
        let _ = write!(
            page,
            "\n## {heading}\n\n| setting | flag | value | default | meaning |\n|---|---|---|---|---|\n"
        );
        for Setting { key, flag, value, default, meaning, .. } in
            settings.iter().filter(|setting| setting.heading == heading)
        {
            let _ = writeln!(page, "| `{key}` | `--{flag}` | {value} | {default} | {meaning} |");
        }
    }
    page
}

#[test]
fn the_page_has_the_settings_of_the_program() {
    let page = page();
    if std::env::var_os("COSCAN_UPDATE").is_some() {
        std::fs::write(PAGE, &page).expect("the page can be written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        page.contains("| `limits.queries_running` | `--queries-running` | N | 8 for each core |")
    );
    assert!(written == page, "docs/configuration.md is not up to date; set COSCAN_UPDATE=1");
}
