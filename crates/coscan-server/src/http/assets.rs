//! The files of the page. They are part of the program: the page needs no network beside it.

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::IntoResponse;
use axum::routing::get;

/// The page loads nothing from elsewhere, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

macro_rules! files {
    ($($path:literal: $file:literal, $kind:literal;)*) => {
        /// Path, type and text of each file.
        const FILES: &[(&str, &str, &str)] =
            &[$(($path, $kind, include_str!(concat!("window/", $file)))),*];
    };
}

files! {
    "/": "index.html", "text/html; charset=utf-8";
    "/window.css": "window.css", "text/css; charset=utf-8";
    "/window.js": "window.js", "text/javascript; charset=utf-8";
    "/feed.js": "feed.js", "text/javascript; charset=utf-8";
    "/state.js": "state.js", "text/javascript; charset=utf-8";
    "/map.js": "map.js", "text/javascript; charset=utf-8";
    "/charts.js": "charts.js", "text/javascript; charset=utf-8";
    "/scans.js": "scans.js", "text/javascript; charset=utf-8";
    "/words.js": "words.js", "text/javascript; charset=utf-8";
}

/// A route for each file.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, text)| {
        router.route(path, get(async move || answer(kind, text)))
    })
}

fn answer(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text)
}
