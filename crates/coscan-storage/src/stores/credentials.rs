//! Which credentials a store was given, in words without the credentials.

use object_store::Error;

use super::error_text::plain;

/// Where credentials come from, and what must not show.
#[derive(Default)]
pub(super) struct Credentials {
    source: Option<Source>,
    /// The options and variables that give them.
    names: Vec<String>,
    secrets: Vec<String>,
}

/// Where a kind of stores gets credentials.
pub(super) struct Source {
    /// What to set.
    pub(super) help: &'static str,
    /// In the address that is asked for credentials where none are set.
    pub(super) metadata_service: &'static str,
}

/// Shorter ones would take every letter out of a text.
const SECRET_CHARS_MIN: usize = 4;
/// A part of a secret that gives it away: a line of a key in a JSON file, the signature in a token.
const PART_CHARS_MIN: usize = 32;

/// What an error says in place of a secret.
const HIDDEN: &str = "[hidden]";

impl Credentials {
    /// None are set yet.
    pub(super) fn from(source: Source) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// An option or a variable says who asks.
    pub(super) fn add(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    /// Takes a value out of all texts.
    pub(super) fn hide(&mut self, secret: &str) {
        let is_separator = |c: char| c.is_whitespace() || "\"\\&=,".contains(c);
        let parts = secret.split(is_separator).filter(|part| part.len() >= PART_CHARS_MIN);
        let whole = Some(secret).filter(|secret| secret.len() >= SECRET_CHARS_MIN);
        self.secrets.extend(whole.into_iter().chain(parts).map(str::to_owned));
    }

    /// An error of the store, with what the user needs to know and without what nobody may see.
    pub(super) fn explain(&self, error: Error) -> Error {
        let missing = self.source.as_ref().filter(|source| {
            self.names.is_empty() && error.to_string().contains(source.metadata_service)
        });
        match (self.without_secrets(error), missing) {
            (Error::PermissionDenied { path, source }, _) => {
                let source = format!("{source}. {}", self.used()).into();
                Error::PermissionDenied { path, source }
            }
            (Error::Unauthenticated { path, source }, _) => {
                let source = format!("{source}. {}", self.used()).into();
                Error::Unauthenticated { path, source }
            }
            (Error::Generic { store, source: cause }, Some(Source { help, .. })) => {
                let source = format!(
                    "there are no credentials: none are set, and this machine has no service that gives any ({cause}). \
                     To give some, {help}"
                );
                Error::Generic { store, source: source.into() }
            }
            // A listing that is denied is no error of its own in `object_store`.
            (Error::Generic { store, source }, None) if is_denial(&source.to_string()) => {
                let source = format!("{source}. {}", self.used()).into();
                Error::Generic { store, source }
            }
            (error, _) => error,
        }
    }

    fn used(&self) -> String {
        match (&self.source, self.names.as_slice()) {
            (None, _) => "No credentials were used".to_owned(),
            (Some(Source { help, .. }), []) => {
                format!("The credentials were those of this machine. To use others, {help}")
            }
            (_, names) => format!("The credentials were those of {}", names.join(", ")),
        }
    }

    /// The same error with its texts cleaned and made plain.
    pub(super) fn without_secrets(&self, error: Error) -> Error {
        let path = |path: String| self.clean(path);
        let source = |source: Box<dyn std::error::Error + Send + Sync>| {
            plain(&self.clean(source.to_string())).into()
        };
        match error {
            Error::Generic { store, source: s } => Error::Generic { store, source: source(s) },
            Error::NotFound { path: p, source: s } => {
                Error::NotFound { path: path(p), source: source(s) }
            }
            Error::AlreadyExists { path: p, source: s } => {
                Error::AlreadyExists { path: path(p), source: source(s) }
            }
            Error::Precondition { path: p, source: s } => {
                Error::Precondition { path: path(p), source: source(s) }
            }
            Error::NotModified { path: p, source: s } => {
                Error::NotModified { path: path(p), source: source(s) }
            }
            Error::PermissionDenied { path: p, source: s } => {
                Error::PermissionDenied { path: path(p), source: source(s) }
            }
            Error::Unauthenticated { path: p, source: s } => {
                Error::Unauthenticated { path: path(p), source: source(s) }
            }
            Error::NotSupported { source: s } => Error::NotSupported { source: source(s) },
            // These speak of paths, tasks and names of settings.
            error => error,
        }
    }

    fn clean(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
    }
}

/// Whether a server says that whoever asks may not, or should say who it is.
fn is_denial(text: &str) -> bool {
    text.contains("403 Forbidden") || text.contains("401 Unauthorized")
}
