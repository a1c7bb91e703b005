//! The clouds: what their settings are called, where those come from, how a store is made of them.

use std::str::FromStr;
use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ObjectStore, Result};
use url::Url;

use super::credentials::{Credentials, Source};
use super::error::StoreError;
use super::options::StoreOptions;
use super::remote::RemoteStore;
use super::timeouts::Timeouts;

/// A builder of `object_store`, with the names of what it takes.
pub(super) trait Cloud: Default {
    type Key: FromStr + AsRef<str>;
    /// How options begin.
    const OPTIONS: &'static str;
    /// How environment variables begin. The rest, in lower case, is a key.
    const VARIABLES: &'static str;
    /// The key of what URLs say: bucket or container.
    const BUCKET: &'static str;
    /// Keys that say who asks. Options that have any of them leave those of the environment aside.
    const CREDENTIALS: &'static [&'static str];
    /// Keys of addresses to send requests to.
    const ENDPOINTS: &'static [&'static str];
    /// Keys whose values nobody may see.
    const SECRETS: &'static [&'static str];
    /// In the address of the service that gives credentials to virtual machines of the cloud.
    const METADATA_SERVICE: &'static str;
    /// What to set.
    const HELP: &'static str;

    fn with(self, key: Self::Key, value: &str) -> Self;
    fn finish(self, root: &Url, timeouts: Timeouts) -> Result<Arc<dyn ObjectStore>>;
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
        let store = self
            .with_bucket_name(root.host_str().unwrap_or_default())
            .with_retry(timeouts.retry_config())
            .with_http_connector(timeouts.connector())
            .build()?;
        Ok(Arc::new(store))
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
        let store = self
            .with_bucket_name(root.host_str().unwrap_or_default())
            .with_retry(timeouts.retry_config())
            .with_http_connector(timeouts.connector())
            .build()?;
        Ok(Arc::new(store))
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
        let store = self
            .with_url(root.as_str())
            .with_retry(timeouts.retry_config())
            .with_http_connector(timeouts.connector())
            .build()?;
        Ok(Arc::new(store))
    }
}

/// The store of a bucket, from the environment and from options, which win.
pub(super) fn build<C: Cloud>(
    root: &Url,
    options: &StoreOptions,
    timeouts: Timeouts,
) -> std::result::Result<RemoteStore, StoreError> {
    if !options.is_empty() && options.of::<C>().next().is_none() {
        let options = options.names();
        return Err(StoreError::UnusedOptions { options, url: root.to_string() });
    }
    if root.host_str().is_none_or(str::is_empty) {
        let scheme = root.scheme().to_owned();
        return Err(StoreError::MissingBucket { url: root.to_string(), scheme });
    }
    let (builder, credentials) = configure::<C>(&variables::<C>(), options)?;
    let store = builder.finish(root, timeouts).map_err(|error| StoreError::NotBuilt {
        url: root.to_string(),
        cause: Box::new(credentials.without_secrets(error)),
        help: C::HELP,
    })?;
    Ok(RemoteStore::new(root.as_str(), store, credentials))
}

/// A builder with all settings, and where its credentials come from. Credentials are taken whole: those of the
/// environment only if the options have none.
fn configure<C: Cloud>(
    variables: &[(String, String)],
    options: &StoreOptions,
) -> std::result::Result<(C, Credentials), StoreError> {
    let is_credential = |key: &C::Key| C::CREDENTIALS.contains(&key.as_ref());
    let brings_credentials = options.of::<C>().any(|(_, key, _)| is_credential(&key));
    let variables = variables.iter().filter_map(|(name, value)| {
        let key: C::Key = key_of_variable::<C>(name)?.parse().ok()?;
        let is_used = !(brings_credentials && is_credential(&key));
        is_used.then_some((name.as_str(), key, value.as_str()))
    });

    let mut builder = C::default();
    let source = Source { help: C::HELP, metadata_service: C::METADATA_SERVICE };
    let mut credentials = Credentials::from(source);
    let mut plain = None;
    let mut allows_plain = false;
    for (name, key, value) in variables.chain(options.of::<C>()) {
        if C::SECRETS.contains(&key.as_ref()) {
            credentials.hide(value);
        }
        if is_credential(&key) {
            credentials.add(name);
        }
        if C::ENDPOINTS.contains(&key.as_ref()) {
            plain = value.starts_with("http://").then(|| name.to_owned());
        }
        if key.as_ref() == "allow_http" {
            allows_plain = value.eq_ignore_ascii_case("true");
        }
        builder = builder.with(key, value);
    }
    if let Some(setting) = plain.filter(|_| !allows_plain) {
        let prefix = if setting.starts_with(C::OPTIONS) { C::OPTIONS } else { C::VARIABLES };
        let allow = if prefix == C::OPTIONS { "allow_http" } else { "ALLOW_HTTP" };
        return Err(StoreError::PlainHttp { setting, allow: format!("{prefix}{allow}") });
    }
    Ok((builder, credentials))
}

/// Variables of the environment that may be settings, in an order that does not change.
fn variables<C: Cloud>() -> Vec<(String, String)> {
    let mut variables: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| key_of_variable::<C>(name).is_some())
        .collect();
    variables.sort();
    variables
}

/// Two of the variables that the clouds' own tools use do not begin as the others.
fn key_of_variable<C: Cloud>(name: &str) -> Option<String> {
    match (C::OPTIONS, name) {
        ("gcp.", "SERVICE_ACCOUNT") => Some("google_service_account".to_owned()),
        ("azure.", "IDENTITY_ENDPOINT") => Some("azure_msi_endpoint".to_owned()),
        _ => name.starts_with(C::VARIABLES).then(|| name.to_ascii_lowercase()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    const ENVIRONMENT: [(&str, &str); 4] = [
        ("AWS_ACCESS_KEY_ID", "id of the machine"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_SECRET_ACCESS_KEY", "secret of the machine"),
        ("AWS_SESSION_TOKEN", "token of the machine"),
    ];

    fn value(options: &[(&str, &str)], key: AmazonS3ConfigKey) -> Option<String> {
        let options = StoreOptions::new(pairs(options)).unwrap();
        let (builder, _) = configure::<AmazonS3Builder>(&pairs(&ENVIRONMENT), &options).unwrap();
        builder.get_config_value(&key)
    }

    #[test]
    fn credentials_of_options_are_not_mixed_with_those_of_the_environment() {
        use AmazonS3ConfigKey::{AccessKeyId, Region, Token};
        let own = [("aws.access_key_id", "own id"), ("aws.secret_access_key", "own secret")];
        assert_eq!(value(&own, AccessKeyId).unwrap(), "own id");
        assert_eq!(value(&own, Token), None);
        assert_eq!(value(&own, Region).unwrap(), "eu-west-1");
        let other = [("aws.region", "us-east-2")];
        assert_eq!(value(&other, AccessKeyId).unwrap(), "id of the machine");
        assert_eq!(value(&other, Token).unwrap(), "token of the machine");
        assert_eq!(value(&other, Region).unwrap(), "us-east-2");
    }

    #[test]
    fn an_http_address_of_the_environment_is_allowed_there() {
        let mut variables = pairs(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")]);
        let configure = |variables: &[(String, String)]| {
            configure::<AmazonS3Builder>(variables, &StoreOptions::default()).map(|_| ())
        };
        let text = configure(&variables).unwrap_err().to_string();
        assert!(text.contains("AWS_ENDPOINT_URL") && text.contains("AWS_ALLOW_HTTP"), "{text}");
        variables.extend(pairs(&[("AWS_ALLOW_HTTP", "true")]));
        configure(&variables).unwrap();
    }
}
