//! Settings of object stores, as in SQL: `OPTIONS ('aws.region' 'eu-west-1')`.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;

use super::cloud::Cloud;
use super::error::StoreError;

/// The state of the hash, random for each process, so that a stamp reveals nothing about the options.
static STAMPS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Settings of object stores by name, checked. Values never show: not in `Debug`, not in errors.
///
/// A name is `aws.`, `gcp.` or `azure.` and then a key of that cloud's builder in `object_store`, such as
/// `aws.access_key_id`, `gcp.service_account_path` or `azure.account_name`. Options with credentials use none of the
/// environment.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreOptions {
    values: Arc<BTreeMap<String, String>>,
}

impl StoreOptions {
    /// Options from names and values.
    ///
    /// # Errors
    /// If no cloud has such a name, or the name is of a bucket, which the URL gives.
    pub fn new(options: impl IntoIterator<Item = (String, String)>) -> Result<Self, StoreError> {
        let values: BTreeMap<_, _> = options.into_iter().collect();
        for name in values.keys() {
            let known = is_known::<AmazonS3Builder>(name)
                || is_known::<GoogleCloudStorageBuilder>(name)
                || is_known::<MicrosoftAzureBuilder>(name);
            if !known {
                return Err(StoreError::UnknownOption { option: name.clone() });
            }
        }
        Ok(Self { values: Arc::new(values) })
    }

    /// Whether a name has the prefix of a cloud: `aws.`, `gcp.` or `azure.`. The option itself may be unknown.
    #[must_use]
    pub fn is_for_store(name: &str) -> bool {
        [
            AmazonS3Builder::OPTIONS,
            GoogleCloudStorageBuilder::OPTIONS,
            MicrosoftAzureBuilder::OPTIONS,
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
    }

    /// Whether no option is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The settings of one cloud: name, key, value.
    pub(super) fn of_cloud<C: Cloud>(&self) -> impl Iterator<Item = (&str, C::Key, &str)> {
        let set = self.values.iter();
        set.filter_map(|(name, value)| Some((name.as_str(), key_of::<C>(name)?, value.as_str())))
    }

    /// A hash that identifies the options within this process; `None` without options.
    pub(super) fn stamp(&self) -> Option<String> {
        (!self.is_empty()).then(|| format!("{:016x}", STAMPS.hash_one(&self.values)))
    }

    /// All names, for errors.
    pub(super) fn names(&self) -> String {
        self.values.keys().cloned().collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.values.keys()).finish()
    }
}

fn is_known<C: Cloud>(name: &str) -> bool {
    key_of::<C>(name).is_some_and(|key| key.as_ref() != C::BUCKET)
}

fn key_of<C: Cloud>(name: &str) -> Option<C::Key> {
    let key = name.strip_prefix(C::OPTIONS)?;
    // datafusion-cli says "path" where object_store does not.
    let key = if key == "application_credentials_path" { "application_credentials" } else { key };
    key.parse().ok()
}
