//! Checks whether settings fit together, and the files that they name.

use std::path::Path;

use crate::config::{Config, ConfigError};
use crate::listen::load_certificate;
use crate::users::Users;

/// Checks whether a server can run with these settings, and the files of users and certificates. Does not open tables
/// or addresses.
///
/// # Errors
/// All problems, one sentence for each.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    let mut errors = config.errors();
    errors.extend(security_errors(config));
    errors.extend(config.database.as_deref().and_then(database_error));
    if let Some(error) = config.ring.as_ref().and_then(|ring| crate::ring::check(ring).err()) {
        errors.push(error.to_string());
    }
    #[cfg(feature = "distributed")]
    if errors.is_empty()
        && let Some(workers) = &config.workers
        && let Err(error) = crate::workers::Membership::load(workers)
    {
        errors.push(error.to_string());
    }
    if errors.is_empty() { Ok(()) } else { Err(ConfigError::Wrong(errors)) }
}

/// The reason why a database cannot be in a directory. The database is not opened: another server may have it open.
fn database_error(directory: &Path) -> Option<String> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    let is_possible = directory.is_dir() || !directory.exists() && parent.is_none_or(Path::is_dir);
    (!is_possible).then(|| {
        format!(
            "database: {} is no directory, and there is none to create it in",
            directory.display()
        )
    })
}

/// Secret files that every local user can read because of their mode, one sentence for each. Directories above them are
/// not checked.
#[must_use]
pub fn exposed_files(config: &Config) -> Vec<String> {
    let tls = config.tls.as_ref().map(|tls| ("tls.key", &tls.key));
    let users = config.users_file.as_ref().map(|path| ("users_file", path));
    let ring = config.ring.as_ref().and_then(|ring| Some(("ring.key", ring.key.as_ref()?)));
    let workers = config.workers.as_ref();
    let workers = workers.and_then(|workers| Some(("workers.key", workers.key.as_ref()?)));
    let exposed =
        [tls, users, ring, workers].into_iter().flatten().filter(|(_, path)| all_may_read(path));
    exposed
        .map(|(setting, path)| {
            let path = path.display();
            format!(
                "every user of this machine can read {path} ({setting}); run: chmod o-rwx {path}"
            )
        })
        .collect()
}

#[cfg(unix)]
fn all_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const READ_BY_OTHERS: u32 = 0o004;
    path.metadata().is_ok_and(|file| file.permissions().mode() & READ_BY_OTHERS != 0)
}

#[cfg(not(unix))]
fn all_may_read(_path: &Path) -> bool {
    false
}

fn security_errors(config: &Config) -> Vec<String> {
    let outside = config.listen.addresses().find(|address| !Config::is_loopback(*address));
    let mut errors = Vec::new();
    if let Some(address) = outside {
        if config.insecure {
            errors.push(format!(
                "insecure is set, and other machines could reach {address}; listen at 127.0.0.1, or use users_file \
                 and tls"
            ));
        }
        if config.tls.is_none() {
            errors.push(format!(
                "other machines can reach {address}, so it needs a certificate; set tls.certificate and tls.key, or \
                 listen at 127.0.0.1"
            ));
        }
    }
    if let Some(tls) = &config.tls
        && let Err(error) = load_certificate(tls)
    {
        errors.push(error.to_string());
    }
    match (&config.users_file, config.insecure) {
        // A worker that only executes tasks has no clients.
        (None, false) if config.listen.addresses().next().is_none() => {}
        (None, false) => errors.push(
            "there is no users_file; make one with `coscan user NAME`, or set insecure to let everyone on this \
             machine read all tables"
                .to_owned(),
        ),
        (Some(_), true) => {
            errors.push("both users_file and insecure are set; leave one of them out".to_owned());
        }
        (Some(path), false) => errors.extend(users_errors(config, path)),
        (None, true) => {}
    }
    errors
}

fn users_errors(config: &Config, path: &Path) -> Vec<String> {
    let users = match Users::load(path) {
        Ok(users) => users,
        Err(error) => return vec![error.to_string()],
    };
    let granted = users.granted_tables();
    // Those of the database come and go.
    let may_exist = |table: &String| config.tables.contains_key(table) || config.database.is_some();
    let unknown = granted.iter().filter(|table| !may_exist(table));
    unknown
        .map(|table| format!("{} grants table `{table}`, which is not configured", path.display()))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        match check(&toml::from_str(text).unwrap()) {
            Err(ConfigError::Wrong(errors)) => errors,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_that_is_wrong_is_named_at_once() {
        let errors = errors(
            "users_file = '/nowhere/users.toml'\n[tables]\nt = ''\n[listen]\npostgres = '0.0.0.0:5432'\n\
             [tls]\ncertificate = '/nowhere/c.pem'\nkey = '/nowhere/k.pem'\n[limits]\nqueries_running = 0",
        );
        for part in ["queries_running", "tables.\"t\"", "users.toml", "c.pem"] {
            let named = errors.iter().filter(|error| error.contains(part));
            assert_eq!(named.count(), 1, "{part}: {errors:?}");
        }
        assert_eq!(errors.len(), 4, "{errors:?}");
    }

    #[test]
    fn without_security_a_server_listens_on_loopback_addresses_only() {
        let config = |at: &str, insecure: bool| {
            format!("insecure = {insecure}\n[listen]\npostgres = '{at}'")
        };
        check(&toml::from_str(&config("127.0.0.1:0", true)).unwrap()).unwrap();
        check(&toml::from_str(&config("[::1]:0", true)).unwrap()).unwrap();
        assert!(errors(&config("0.0.0.0:0", true)).iter().any(|e| e.contains("insecure")));
        assert!(errors(&config("127.0.0.1:0", false))[0].contains("users_file"));
        assert!(errors("insecure = true")[0].contains("no address"));
        let worker = "[workers]\nlisten = '127.0.0.1:0'\nstores = ['/data']\ninsecure = true";
        check(&toml::from_str(worker).unwrap()).unwrap();
        let flight = "users_file = '/nowhere'\n[listen]\nflight = '0.0.0.0:0'";
        assert!(errors(flight).iter().any(|e| e.contains("certificate")));
    }

    #[test]
    fn unknown_settings_are_refused() {
        for text in ["tabels = {}", "[limits]\nqueries = 1", "[listen]\ntelnet = '127.0.0.1:23'"] {
            assert!(toml::from_str::<Config>(text).is_err(), "{text}");
        }
        let config: Config =
            toml::from_str("[limits]\nquery_time_max = '90s'\n[memory]\nbytes = '1GiB'").unwrap();
        assert_eq!(config.limits.query_time_max, Some(std::time::Duration::from_secs(90)));
        assert_eq!(config.memory.bytes, Some(1 << 30));
    }

    #[cfg(unix)]
    #[test]
    fn secrets_that_all_may_read_are_named() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, mode: u32| {
            let path = directory.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.display().to_string()
        };
        let (users, key) = (file("users.toml", 0o640), file("k.pem", 0o644));
        let config = format!("users_file = '{users}'\n[tls]\ncertificate = '{key}'\nkey = '{key}'");
        let exposed = exposed_files(&toml::from_str(&config).unwrap());
        assert_eq!(exposed.len(), 1, "{exposed:?}");
        assert!(exposed[0].contains("k.pem") && exposed[0].contains("tls.key"), "{exposed:?}");
    }
}
