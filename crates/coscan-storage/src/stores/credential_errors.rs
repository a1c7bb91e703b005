//! Errors that name the source of a store's credentials and hide their values.

use object_store::Error;

use super::error_text::plain;

/// The sources of credentials, and the texts that must not show.
#[derive(Default)]
pub(super) struct Credentials {
    source: Option<Source>,
    /// The options and variables that set them.
    names: Vec<String>,
    secrets: Vec<String>,
}

/// The sources of credentials of a kind of store.
pub(super) struct Source {
    /// The settings that give credentials.
    pub(super) help: &'static str,
    /// A part of the address of the service that gives credentials where none are set.
    pub(super) metadata_service: &'static str,
}

/// The length below which secrets are not hidden, since they would match everywhere.
const SECRET_CHARS_MIN: usize = 4;
/// The length from which parts are hidden, too: a line of a key in a JSON file, the signature in a token.
const PART_CHARS_MIN: usize = 32;

/// The text that replaces a secret in errors.
const HIDDEN: &str = "[hidden]";

impl Credentials {
    /// Starts without credentials.
    pub(super) fn from(source: Source) -> Self {
        Self { source: Some(source), ..Self::default() }
    }

    /// Notes an option or a variable that sets a credential.
    pub(super) fn add(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    /// Hides a value in all texts.
    pub(super) fn hide(&mut self, secret: &str) {
        let is_separator = |c: char| c.is_whitespace() || "\"\\&=,".contains(c);
        let parts = secret.split(is_separator).filter(|part| part.len() >= PART_CHARS_MIN);
        let whole = Some(secret).filter(|secret| secret.len() >= SECRET_CHARS_MIN);
        self.secrets.extend(whole.into_iter().chain(parts).map(str::to_owned));
    }

    /// An error of the store with the source of the credentials and without secrets.
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
            // `object_store` has no separate error for a denied listing.
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

    /// The error with plain texts and hidden secrets.
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
            // Other errors contain only paths, tasks and names of settings.
            error => error,
        }
    }

    fn clean(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| text.replace(secret, HIDDEN))
    }
}

/// Whether a server refused the credentials, or asked for some.
fn is_denial(text: &str) -> bool {
    text.contains("403 Forbidden") || text.contains("401 Unauthorized")
}
