//! Objects in memory, and the operations on them that reading needs.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures::stream;
use s3s::access::{S3Access, S3AccessContext};
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use super::{BUCKET, PUBLIC_BUCKET, REGION, Shared, lock};

#[derive(Default)]
pub(super) struct Objects {
    by_key: BTreeMap<String, StoredObject>,
    versions: u64,
}

#[derive(Clone)]
struct StoredObject {
    content: Bytes,
    e_tag: ETag,
    modified: Timestamp,
}

impl Objects {
    pub(super) fn put(&mut self, key: &str, content: Bytes) {
        self.versions += 1;
        let object = StoredObject {
            content,
            e_tag: ETag::Strong(format!("version-{}", self.versions)),
            modified: Timestamp::from(SystemTime::now()),
        };
        self.by_key.insert(key.to_owned(), object);
    }
}

/// Requests are signed for the region, but anyone may read the public bucket.
pub(super) struct Access;

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if context.s3_path().get_bucket_name() == Some(PUBLIC_BUCKET) {
            return Ok(());
        }
        if context.credentials().is_none() {
            return Err(s3_error!(AccessDenied, "Signature is required"));
        }
        let signature = context.headers().get("authorization");
        let scope = format!("/{REGION}/s3/");
        match signature.is_some_and(|text| text.to_str().is_ok_and(|text| text.contains(&scope))) {
            true => Ok(()),
            false => Err(s3_error!(AccessDenied, "The region is another")),
        }
    }
}

/// The operations that reading needs.
pub(super) struct Backend(pub(super) Arc<Shared>);

impl Backend {
    fn find(
        &self,
        bucket: &str,
        key: &str,
        if_match: Option<&ETagCondition>,
        if_none_match: Option<&ETagCondition>,
    ) -> S3Result<StoredObject> {
        check_bucket(bucket)?;
        let objects = lock(&self.0.objects);
        let object = objects.by_key.get(key).ok_or_else(|| s3_error!(NoSuchKey))?;
        let is = |condition: &ETagCondition| match condition {
            ETagCondition::ETag(e_tag) => e_tag.strong_cmp(&object.e_tag),
            ETagCondition::Any => true,
        };
        if if_match.is_some_and(|condition| !is(condition)) {
            return Err(s3_error!(PreconditionFailed));
        }
        if if_none_match.is_some_and(is) {
            return Err(s3_error!(NotModified));
        }
        Ok(object.clone())
    }
}

fn check_bucket(bucket: &str) -> S3Result<()> {
    if [BUCKET, PUBLIC_BUCKET].contains(&bucket) { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

#[async_trait::async_trait]
impl S3 for Backend {
    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let object = self.find(
            &input.bucket,
            &input.key,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        let all = object.content.len() as u64;
        let range = match input.range {
            Some(range) => range.check(all)?,
            None => 0..all,
        };
        let content_range =
            input.range.map(|_| format!("bytes {}-{}/{all}", range.start, range.end - 1));
        let content = object.content.slice(range.start as usize..range.end as usize);
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(content.len() as i64),
            content_range,
            body: Some(StreamingBlob::wrap(stream::iter([Ok::<_, Infallible>(content)]))),
            e_tag: Some(object.e_tag),
            last_modified: Some(object.modified),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let object = self.find(
            &input.bucket,
            &input.key,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(object.content.len() as i64),
            e_tag: Some(object.e_tag),
            last_modified: Some(object.modified),
            ..HeadObjectOutput::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        check_bucket(&input.bucket)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        let after = input.continuation_token.as_ref().or(input.start_after.as_ref());
        let keys_max = input.max_keys.unwrap_or(1000).clamp(1, 1000) as usize;
        let objects = lock(&self.0.objects);
        let mut contents = Vec::new();
        let mut prefixes = BTreeSet::new();
        let mut last = None;
        let mut is_truncated = false;
        let start = after.filter(|after| **after > prefix).unwrap_or(&prefix).clone();
        for (key, object) in objects.by_key.range(start..) {
            let Some(rest) = key.strip_prefix(&prefix) else { break };
            let cut = input.delimiter.as_ref().and_then(|delimiter| rest.find(delimiter.as_str()));
            let common = cut.map(|cut| key[..=prefix.len() + cut].to_owned());
            let name = common.as_ref().unwrap_or(key);
            let is_known = common.as_ref().is_some_and(|common| prefixes.contains(common));
            if is_known || after.is_some_and(|after| name <= after) {
                continue;
            }
            if contents.len() + prefixes.len() == keys_max {
                is_truncated = true;
                break;
            }
            last = Some(name.clone());
            match common {
                Some(common) => _ = prefixes.insert(common),
                None => contents.push(Object {
                    key: Some(key.clone()),
                    size: Some(object.content.len() as i64),
                    e_tag: Some(object.e_tag.clone()),
                    last_modified: Some(object.modified.clone()),
                    ..Object::default()
                }),
            }
        }
        let prefixes = prefixes.into_iter().map(|prefix| CommonPrefix { prefix: Some(prefix) });
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(prefix),
            key_count: Some((contents.len() + prefixes.len()) as i32),
            max_keys: Some(keys_max as i32),
            common_prefixes: Some(prefixes.collect()),
            contents: Some(contents),
            is_truncated: Some(is_truncated),
            next_continuation_token: last.filter(|_| is_truncated),
            continuation_token: input.continuation_token,
            ..ListObjectsV2Output::default()
        }))
    }
}
