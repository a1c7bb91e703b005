#![allow(clippy::unwrap_used)]
use super::*;
use crate::users::{Users, Verifier};

#[test]
fn settings_are_set_shown_and_reset() {
    let user = Users::anyone().find("ann").unwrap();
    let mut settings = Settings::default();
    for (name, value, shown) in [
        ("coscan.weight", "3", "3"),
        ("statement_timeout", "1500", "1500ms"),
        ("Statement_Timeout", "2min", "120000ms"),
        ("statement_timeout", "0", "0"),
        ("coscan.sharing", "FALSE", "off"),
        ("coscan.distributed", "Retry", "retry"),
        ("coscan.distributed", "on", "on"),
        ("coscan.share_results", "Off", "off"),
        ("coscan.share_results", "running", "running"),
        ("coscan.memory_limit", "1MiB", "1048576"),
        ("TimeZone", "Europe/Amsterdam", "Europe/Amsterdam"),
        ("application_name", "psql", "psql"),
        ("client_encoding", "utf-8", "UTF8"),
        ("client_encoding", "'utf-8'", "UTF8"),
    ] {
        let default = settings.get(name, &user).unwrap();
        settings.set(name, Some(value), &user).unwrap();
        assert_eq!(settings.get(name, &user).unwrap(), shown, "{name}");
        if value == "3" {
            settings.set(name, None, &user).unwrap();
            assert_eq!(settings.get(name, &user).unwrap(), default, "{name}");
        }
    }
}

#[test]
fn settings_of_datafusion_and_wrong_values_are_refused() {
    let user = Users::anyone().find("ann").unwrap();
    let mut settings = Settings::default();
    for name in ["datafusion.runtime.memory_limit", "datafusion.execution.batch_size", "x"] {
        let error = settings.set(name, Some("1"), &user).unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnknownSetting, "{name}");
    }
    for (name, value) in [
        ("coscan.weight", "0"),
        ("coscan.weight", "x"),
        ("coscan.distributed", "maybe"),
        ("coscan.share_results", "maybe"),
        ("statement_timeout", "-1"),
        ("timezone", "Atlantis"),
        ("client_encoding", "latin1"),
        ("standard_conforming_strings", "off"),
    ] {
        let error = settings.set(name, Some(value), &user).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidValue, "{name}");
    }
}

#[test]
fn nobody_takes_more_weight_than_granted() {
    let verifier = Verifier::of_password("x").unwrap();
    let users = Users::parse(&format!("[users.ann]\nverifier='{verifier}'\nweight=2"));
    let user = users.unwrap().find("ann").unwrap();
    let mut settings = Settings::default();
    assert_eq!(settings.get("coscan.weight", &user).unwrap(), "2");
    settings.set("coscan.weight", Some("1"), &user).unwrap();
    assert!(settings.set("coscan.weight", Some("3"), &user).is_err());
}
