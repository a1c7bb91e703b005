//! One `ObjectStore` implementation for all wrappers: they define reads and delegate the rest.

/// Implements [`object_store::ObjectStore`] for a type with the inherent methods `inner`, `read`
/// and `read_ranges`. Writing and deleting go to `inner` unchanged; so does listing, unless its methods are given.
///
/// A macro, because a blanket implementation of a foreign trait is not allowed.
macro_rules! object_store_by_reads {
    ($store:ty) => {
        object_store_by_reads!($store, listed by {
            fn list(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>>
            {
                self.inner().list(prefix)
            }

            fn list_with_offset(
                &self,
                prefix: Option<&object_store::path::Path>,
                offset: &object_store::path::Path,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>>
            {
                self.inner().list_with_offset(prefix, offset)
            }

            async fn list_with_delimiter(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> object_store::Result<object_store::ListResult> {
                self.inner().list_with_delimiter(prefix).await
            }
        });
    };
    ($store:ty, listed by { $($lists:tt)* }) => {
        #[async_trait::async_trait]
        impl object_store::ObjectStore for $store {
            async fn get_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::GetOptions,
            ) -> object_store::Result<object_store::GetResult> {
                self.read(location, options).await
            }

            async fn get_ranges(
                &self,
                location: &object_store::path::Path,
                ranges: &[std::ops::Range<u64>],
            ) -> object_store::Result<Vec<bytes::Bytes>> {
                self.read_ranges(location, ranges).await
            }

            async fn put_opts(
                &self,
                location: &object_store::path::Path,
                payload: object_store::PutPayload,
                options: object_store::PutOptions,
            ) -> object_store::Result<object_store::PutResult> {
                self.inner().put_opts(location, payload, options).await
            }

            async fn put_multipart_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::PutMultipartOptions,
            ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
                self.inner().put_multipart_opts(location, options).await
            }

            fn delete_stream(
                &self,
                locations: futures::stream::BoxStream<
                    'static,
                    object_store::Result<object_store::path::Path>,
                >,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>>
            {
                self.inner().delete_stream(locations)
            }

            $($lists)*

            async fn copy_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::CopyOptions,
            ) -> object_store::Result<()> {
                self.inner().copy_opts(from, to, options).await
            }

            async fn rename_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::RenameOptions,
            ) -> object_store::Result<()> {
                self.inner().rename_opts(from, to, options).await
            }
        }
    };
}

pub(super) use object_store_by_reads;
