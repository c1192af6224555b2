//! The files that pages load.

use crate::body::PathOf;
use crate::error::ApiError;
use axum::body::Bytes;
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::LazyLock;
use web::{Asset, Assets};

/// The assets of all pages.
pub(super) static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::default);

/// The assets as gzip, by name.
static COMPRESSED: LazyLock<BTreeMap<&'static str, Bytes>> = LazyLock::new(|| {
    let all = ASSETS.all().iter();
    all.filter_map(|asset| Some((asset.name, compressed(asset)?)))
        .collect()
});

fn compressed(asset: &Asset) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(asset.bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

/// Reads an asset. Its path changes with its content, so browsers keep it.
pub(super) async fn read(
    headers: HeaderMap,
    PathOf((hash, name)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let asset = ASSETS.find(&hash, &name).ok_or(ApiError::UnknownRoute)?;
    let fields = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::VARY, "accept-encoding"),
    ];
    let compressed = COMPRESSED.get(asset.name).filter(|_| takes_gzip(&headers));
    let is_compressed = compressed.is_some();
    let bytes = compressed
        .cloned()
        .unwrap_or_else(|| Bytes::from_static(asset.bytes));
    let mut response = (fields, bytes).into_response();
    if is_compressed {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

/// Whether a client accepts gzip, as all browsers do.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    let mut codings = accepted.unwrap_or_default().split(',').map(str::trim);
    codings.any(|coding| coding == "gzip")
}
