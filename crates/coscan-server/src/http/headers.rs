//! Security headers of all responses.

use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::Response;

/// The page loads nothing from other servers. `$frames` are the pages that may show it in a frame.
macro_rules! policy {
    ($frames:literal) => {
        HeaderValue::from_static(concat!(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; ",
            "base-uri 'none'; form-action 'none'; frame-ancestors ",
            $frames
        ))
    };
}

const NO_FRAMES: [(HeaderName, HeaderValue); 2] = [
    (CONTENT_SECURITY_POLICY, policy!("'none'")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// Frames in pages of this machine. Visual Studio Code has its notebooks in pages of a scheme of its own.
const LOCAL_FRAMES: [(HeaderName, HeaderValue); 1] = [(
    CONTENT_SECURITY_POLICY,
    policy!(
        "http://localhost:* http://127.0.0.1:* https://localhost:* https://127.0.0.1:* vscode-webview:"
    ),
)];

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Adds the headers to a response, including refusals. After a refusal the connection ends, so that clients without a
/// login hold none. With `local_frames`, pages of this machine may show the response in a frame.
pub(super) fn add(mut response: Response, local_frames: bool) -> Response {
    let headers = response.headers_mut();
    headers.extend(HEADERS);
    match local_frames {
        true => headers.extend(LOCAL_FRAMES),
        false => headers.extend(NO_FRAMES),
    }
    if response.status().is_client_error() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Ends the connection after a response to a client without a login.
pub(super) async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
