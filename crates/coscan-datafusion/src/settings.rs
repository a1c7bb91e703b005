//! What users set for their session in SQL: `SET coscan.weight = 4`.

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::prelude::SessionConfig;

extensions_options! {
    /// Settings of a session, under the prefix `coscan`.
    pub struct SessionSettings {
        /// How much the queries of this session count beside those of others, at least 1: one of weight 2 is served as
        /// if it had half as much left to read.
        pub weight: u32, default = 1
        /// Seconds after which the files of a table are listed again when a query on it is planned; 0 for each mention in
        /// a query. If that fails, the query sees the files of the last list, and the reason is logged. Without it, they are
        /// listed again only by [`refresh`](crate::refresh).
        pub refresh: Option<u64>, default = None
    }
}

impl ConfigExtension for SessionSettings {
    const PREFIX: &'static str = "coscan";
}

impl SessionSettings {
    /// Those of a session, the usual ones if coscan was not installed in it.
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
