//! The clouds: the names of their settings, and the store that a builder makes.

use std::str::FromStr;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ObjectStore, Result};
use url::Url;

use super::timeouts::Timeouts;

/// A builder of `object_store`, with the names of its settings.
pub(super) trait Cloud: Default {
    type Key: FromStr + AsRef<str>;
    /// The prefix of options.
    const OPTIONS: &'static str;
    /// The prefix of environment variables, which are keys in upper case.
    const VARIABLES: &'static str;
    /// The key of the bucket or container, which the URL gives.
    const BUCKET: &'static str;
    /// The keys of credentials. Options with any of them leave those of the environment aside.
    const CREDENTIALS: &'static [&'static str];
    /// The keys of addresses that requests go to.
    const ENDPOINTS: &'static [&'static str];
    /// The keys whose values must not show.
    const SECRETS: &'static [&'static str];
    /// A part of the address of the metadata service, which gives credentials to machines of the cloud.
    const METADATA_SERVICE: &'static str;
    /// The settings that give credentials, for errors.
    const HELP: &'static str;

    fn with(self, key: Self::Key, value: &str) -> Self;
    fn finish(self, root: &Url, timeouts: Timeouts) -> Result<Arc<dyn ObjectStore>>;
}

/// Builds the store of a builder. This is a macro because the builders have these methods but no trait for them.
macro_rules! finish {
    ($builder:expr, $timeouts:expr) => {{
        let timeouts: Timeouts = $timeouts;
        let builder = $builder.with_retry(timeouts.retry_config());
        Ok(Arc::new(builder.with_http_connector(timeouts.connector()).build()?))
    }};
}

impl Cloud for AmazonS3Builder {
    type Key = AmazonS3ConfigKey;
    const OPTIONS: &'static str = "aws.";
    const VARIABLES: &'static str = "AWS_";
    const BUCKET: &'static str = "aws_bucket";
    const ENDPOINTS: &'static [&'static str] = &["aws_endpoint", "aws_endpoint_url_s3"];
    const CREDENTIALS: &'static [&'static str] = &[
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "aws_web_identity_token_file",
        "aws_role_arn",
        "aws_role_session_name",
        "aws_container_credentials_relative_uri",
        "aws_container_credentials_full_uri",
        "aws_container_authorization_token_file",
        "aws_skip_signature",
    ];
    const SECRETS: &'static [&'static str] =
        &["aws_secret_access_key", "aws_session_token", "aws_sse_customer_key_base64", "proxy_url"];
    const METADATA_SERVICE: &'static str = "/latest/";
    const HELP: &'static str = "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (AWS_ENDPOINT for other \
        servers), or aws.access_key_id and so on in OPTIONS; for a public bucket AWS_SKIP_SIGNATURE=true or \
        aws.skip_signature. Profiles in ~/.aws are not read";

    fn with(self, key: Self::Key, value: &str) -> Self {
        self.with_config(key, value)
    }

    fn finish(self, root: &Url, timeouts: Timeouts) -> Result<Arc<dyn ObjectStore>> {
        finish!(self.with_bucket_name(root.host_str().unwrap_or_default()), timeouts)
    }
}

impl Cloud for GoogleCloudStorageBuilder {
    type Key = GoogleConfigKey;
    const OPTIONS: &'static str = "gcp.";
    const VARIABLES: &'static str = "GOOGLE_";
    const BUCKET: &'static str = "google_bucket";
    const ENDPOINTS: &'static [&'static str] = &["google_base_url"];
    const CREDENTIALS: &'static [&'static str] = &[
        "google_service_account",
        "google_service_account_key",
        "google_application_credentials",
        "google_skip_signature",
    ];
    const SECRETS: &'static [&'static str] = &["google_service_account_key", "proxy_url"];
    const METADATA_SERVICE: &'static str = "/computeMetadata/";
    const HELP: &'static str = "set GOOGLE_SERVICE_ACCOUNT to the file of a service account's key or \
        GOOGLE_APPLICATION_CREDENTIALS to that of `gcloud auth application-default login`, or gcp.service_account_path, \
        gcp.service_account_key or gcp.application_credentials_path in OPTIONS; for a public bucket \
        GOOGLE_SKIP_SIGNATURE=true or gcp.skip_signature";

    fn with(self, key: Self::Key, value: &str) -> Self {
        self.with_config(key, value)
    }

    fn finish(self, root: &Url, timeouts: Timeouts) -> Result<Arc<dyn ObjectStore>> {
        finish!(self.with_bucket_name(root.host_str().unwrap_or_default()), timeouts)
    }
}

impl Cloud for MicrosoftAzureBuilder {
    type Key = AzureConfigKey;
    const OPTIONS: &'static str = "azure.";
    const VARIABLES: &'static str = "AZURE_";
    const BUCKET: &'static str = "azure_container_name";
    const ENDPOINTS: &'static [&'static str] = &["azure_storage_endpoint"];
    const CREDENTIALS: &'static [&'static str] = &[
        "azure_storage_account_key",
        "azure_storage_client_id",
        "azure_storage_client_secret",
        "azure_storage_tenant_id",
        "azure_storage_sas_key",
        "azure_storage_token",
        "azure_msi_endpoint",
        "azure_object_id",
        "azure_msi_resource_id",
        "azure_federated_token_file",
        "azure_use_azure_cli",
        "azure_skip_signature",
        "azure_fabric_token_service_url",
        "azure_fabric_workload_host",
        "azure_fabric_session_token",
        "azure_fabric_cluster_identifier",
    ];
    const SECRETS: &'static [&'static str] = &[
        "azure_storage_account_key",
        "azure_storage_client_secret",
        "azure_storage_sas_key",
        "azure_storage_token",
        "azure_fabric_session_token",
        "proxy_url",
    ];
    const METADATA_SERVICE: &'static str = "/metadata/identity/";
    const HELP: &'static str = "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY (or AZURE_STORAGE_SAS_TOKEN, or \
        AZURE_CLIENT_ID, AZURE_CLIENT_SECRET and AZURE_TENANT_ID), or azure.account_name and so on in OPTIONS; \
        AZURE_USE_AZURE_CLI=true takes the login of `az`; for a public container AZURE_SKIP_SIGNATURE=true or \
        azure.skip_signature";

    fn with(self, key: Self::Key, value: &str) -> Self {
        self.with_config(key, value)
    }

    fn finish(self, root: &Url, timeouts: Timeouts) -> Result<Arc<dyn ObjectStore>> {
        finish!(self.with_url(root.as_str()), timeouts)
    }
}
