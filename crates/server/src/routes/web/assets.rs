//! The files that pages load.

use crate::body::PathOf;
use crate::error::ApiError;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use http::header;
use std::sync::LazyLock;
use web::Assets;

/// The assets of all pages.
pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::default);

/// Reads an asset. Its path changes with its content, so browsers keep it.
pub(super) async fn read(
    PathOf((hash, name)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let asset = ASSETS.find(&hash, &name).ok_or(ApiError::UnknownRoute)?;
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, Bytes::from_static(asset.bytes)).into_response())
}
