//! Errors of locations, for the user who wrote them.

use super::error_text::error_text;

/// The reason why a location does not lead to files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The text is neither a path nor a URL.
    #[error("\"{location}\" is not a usable location: {reason}")]
    WrongLocation {
        /// As given by the user.
        location: String,
        /// The mistake and the remedy.
        reason: String,
    },

    /// No store is known for the URL's scheme.
    #[error(
        "no store is known for \"{scheme}:\" in {url}. These work: a local path, {known}. \
         For others, register a store first"
    )]
    UnknownScheme {
        /// The URL.
        url: String,
        /// Its scheme, such as `gs`.
        scheme: String,
        /// The schemes that work, separated by commas.
        known: String,
    },

    /// An object store's URL lacks the bucket.
    #[error("{url} names no bucket. Write {scheme}://bucket/path")]
    MissingBucket {
        /// The URL.
        url: String,
        /// Its scheme.
        scheme: String,
    },

    /// The store's settings do not work.
    #[error(
        "cannot set up the store of {url}: {}. Check the URL and the settings: {help}",
        error_text(.cause)
    )]
    NotBuilt {
        /// The root of the store.
        url: String,
        /// The error of the store.
        cause: Box<object_store::Error>,
        /// The settings to check.
        help: &'static str,
    },

    /// A URL with a user or a password, which would show wherever the URL does.
    #[error(
        "the URL {url} has a user or a password before the host. Leave them out, and give credentials in the \
         environment or in OPTIONS"
    )]
    UserInUrl {
        /// The root of the store, without user and password.
        url: String,
    },

    /// An option that no store has.
    #[error(
        "there is no option \"{option}\" for stores. Options are aws., gcp. or azure. and then what object_store calls \
         the setting, such as aws.access_key_id, aws.secret_access_key, aws.region, aws.endpoint, aws.allow_http, \
         gcp.service_account_path, azure.account_name, azure.account_key. Buckets stand in the URL"
    )]
    UnknownOption {
        /// Its name.
        option: String,
    },

    /// Options for stores other than that of the URL.
    #[error(
        "the options {options} say nothing about {url}. For s3:// they begin with aws., for gs:// with gcp., for az:// \
         and abfs:// with azure.; other locations take none"
    )]
    UnusedOptions {
        /// Their names.
        options: String,
        /// The root of the store.
        url: String,
    },

    /// Requests, with their credentials, would go over the network unencrypted.
    #[error("{setting} is an http: address. Write https:, or set {allow} to true")]
    PlainHttp {
        /// The option or variable that has the address.
        setting: String,
        /// The setting that allows it.
        allow: String,
    },

    /// The file or directory does not exist.
    #[error("{location} does not exist. Check the {}", what_to_check(.start.as_deref()))]
    NotFound {
        /// As given by the user.
        location: String,
        /// The directory that relative paths start from; `None` for a URL.
        start: Option<String>,
    },

    /// A directory holds no Parquet files.
    #[error(
        "{location} is a directory without Parquet files. Looked for names that end in .parquet, \
         also in its subdirectories; names that begin with . or _ are skipped"
    )]
    NoParquetFiles {
        /// As given by the user.
        location: String,
    },

    /// A pattern matches no file.
    #[error(
        "no file matches {location}. In a pattern, * and ? stay within one directory and ** crosses \
         directories; names that begin with . or _ must be spelled out"
    )]
    NoMatch {
        /// As given by the user.
        location: String,
    },

    /// A web server does not list its directories.
    #[error(
        "the server of {location} does not list directories ({}). Name each file with its URL",
        error_text(.cause)
    )]
    NotListable {
        /// As given by the user.
        location: String,
        /// The error of the store.
        cause: Box<object_store::Error>,
    },

    /// The store does not answer, or refuses.
    #[error(
        "cannot read {location}: {}. \
         Check that you may read it and, for URLs, the host name, the network and the credentials",
        error_text(.cause)
    )]
    Unreachable {
        /// As given by the user.
        location: String,
        /// The error of the store.
        cause: Box<object_store::Error>,
    },
}

fn what_to_check(start: Option<&str>) -> String {
    start.map_or_else(|| "URL".to_owned(), |start| format!("name; relative paths start at {start}"))
}
