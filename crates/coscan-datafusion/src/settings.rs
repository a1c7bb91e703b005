//! Settings that users make in SQL: `SET coscan.weight = 4`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::prelude::SessionConfig;

extensions_options! {
    /// Settings of a session, under the prefix `coscan`.
    pub struct SessionSettings {
        /// Whether scans share reads and decoding with other queries. If false, each query reads and decodes for
        /// itself, as in plain DataFusion, to compare both on the same tables. Tables with files in several stores are
        /// shared even then.
        pub sharing: bool, default = true
        /// The weight of the queries of this session, at least 1: a query of weight 2 is served as if it had half as
        /// much left to read.
        pub weight: u32, default = 1
        /// The most seconds that the list of a table's files is used: a query planned later lists them again. 0 lists
        /// them for each mention in a query. If that fails, the query sees the files of the last list, and the reason
        /// is logged. Without this setting only [`refresh`](crate::refresh) lists files again.
        pub refresh: Option<u64>, default = None
    }
}

impl ConfigExtension for SessionSettings {
    const PREFIX: &'static str = "coscan";
}

impl SessionSettings {
    /// Those of a session; the defaults if coscan is not installed in it.
    #[must_use]
    pub fn of(config: &SessionConfig) -> Self {
        config.options().extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Makes them known to a session that does not have them yet.
    pub(crate) fn add_to(config: &mut SessionConfig) {
        let extensions = &mut config.options_mut().extensions;
        if extensions.get::<Self>().is_none() {
            extensions.insert(Self::default());
        }
    }
}
