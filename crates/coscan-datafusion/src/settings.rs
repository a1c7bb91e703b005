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
        /// is logged. Without this setting only [`refresh`](crate::refresh) lists files again, unless the session's
        /// runtime has no cache of lists (`SET datafusion.runtime.list_files_cache_limit = '0K'`): that is as 0.
        pub refresh: Option<u64>, default = None
    }
}

impl ConfigExtension for SessionSettings {
    const PREFIX: &'static str = "coscan";
}

/// Why the scans of a query are not shared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotShared(pub(crate) &'static str);

impl NotShared {
    /// `None` if they are shared.
    pub(crate) fn of(config: &SessionConfig) -> Option<Self> {
        let of_query = config.get_extension::<Self>().map(|not_shared| *not_shared);
        let sharing = SessionSettings::of(config).sharing;
        of_query.or_else(|| (!sharing).then_some(Self("coscan.sharing is false")))
    }
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
