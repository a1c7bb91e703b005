//! The files of the page. They are embedded in the program, and the page loads nothing from other servers.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

macro_rules! files {
    ($($path:literal: $file:literal, $kind:literal;)*) => {
        /// Path, type and text of each file.
        const FILES: &[(&str, &str, &str)] =
            &[$(($path, $kind, include_str!(concat!("dashboard/", $file)))),*];
    };
}

files! {
    "/": "index.html", "text/html; charset=utf-8";
    "/dashboard.css": "dashboard.css", "text/css; charset=utf-8";
    "/dashboard.js": "dashboard.js", "text/javascript; charset=utf-8";
    "/feed.js": "feed.js", "text/javascript; charset=utf-8";
    "/state.js": "state.js", "text/javascript; charset=utf-8";
    "/map.js": "map.js", "text/javascript; charset=utf-8";
    "/charts.js": "charts.js", "text/javascript; charset=utf-8";
    "/scans.js": "scans.js", "text/javascript; charset=utf-8";
    "/servers.js": "servers.js", "text/javascript; charset=utf-8";
    "/workers.js": "workers.js", "text/javascript; charset=utf-8";
    "/words.js": "words.js", "text/javascript; charset=utf-8";
}

/// A route for each file.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, text)| {
        router.route(path, get(async move || ([(CONTENT_TYPE, kind)], text)))
    })
}
