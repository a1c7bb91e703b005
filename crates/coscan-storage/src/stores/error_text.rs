//! Plain texts of the errors of stores.

use object_store::Error;

/// The prefix of `object_store` before a request.
const REQUEST: &str = "Error performing ";

/// The prefixes of `object_store` before the answer of a server.
const ANSWERS: [&str; 2] =
    ["Server returned non-2xx status code: ", "Server returned error response: "];

/// The text of an error of a store, without the kinds of store and error.
#[must_use]
pub fn error_text(error: &Error) -> String {
    match error {
        Error::Generic { source, .. }
        | Error::PermissionDenied { source, .. }
        | Error::Unauthenticated { source, .. } => plain(&source.to_string()),
        error => plain(&error.to_string()),
    }
}

/// Omits the duration of a request and the settings of retries. Of an answer in XML only code and message remain.
pub(super) fn plain(text: &str) -> String {
    let Some((before, request)) = text.split_once(REQUEST) else { return text.to_owned() };
    let Some((request, answer)) = request.split_once(" - ") else { return text.to_owned() };
    // The text before the address only repeats that it was requested.
    let request = request.rsplit(REQUEST).next().unwrap_or(request);
    let (request, time) = request.split_once(" in ").unwrap_or((request, ""));
    let retries = time.split(", ").find(|part| part.ends_with(" retries"));
    let retries = retries.map_or(String::new(), |retries| format!(", {retries}"));
    let answer = ANSWERS.iter().find_map(|start| answer.strip_prefix(start)).unwrap_or(answer);
    let answer = match (answer.find('<'), element(answer, "Code"), element(answer, "Message")) {
        (Some(body), Some(code), Some(message)) => {
            format!("{}{code}: {message}", &answer[..body])
        }
        (Some(body), Some(code), None) => format!("{}{code}", &answer[..body]),
        _ => plain(answer),
    };
    format!("{before}{request}{retries}: {}", answer.trim_end_matches([' ', ':', '.']))
}

/// The text of the first element of a name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_settings_and_xml_are_left_out() {
        for (said, expected) in [
            (
                "Error performing GET http://host/b/x in 38.1µs - HTTP error: error sending request",
                "GET http://host/b/x: HTTP error: error sending request",
            ),
            (
                "Error performing HEAD https://host/b/x in 5.2s, after 4 retries, max_retries: 10, \
                 retry_timeout: 5s  - Server returned non-2xx status code: 503 Service Unavailable: ",
                "HEAD https://host/b/x, after 4 retries: 503 Service Unavailable",
            ),
            (
                "Error performing GET http://host/b?list-type=2 in 1ms - Server returned non-2xx status code: \
                 404 Not Found: <?xml version=\"1.0\"?><Error><Code>NoSuchBucket</Code>\
                 <Message>The bucket does not exist.</Message></Error>",
                "GET http://host/b?list-type=2: 404 Not Found: NoSuchBucket: The bucket does not exist",
            ),
            (
                "no role: Error performing PUT http://169.254.169.254/t in 2s - Error performing GET http://h/ in \
                 1s - connection refused",
                "no role: PUT http://169.254.169.254/t: GET http://h/: connection refused",
            ),
            (
                "Error performing list request: Error performing GET http://host/b in 1s - refused",
                "GET http://host/b: refused",
            ),
            ("the store sent nothing for 1s", "the store sent nothing for 1s"),
        ] {
            let error = Error::Generic { store: "HTTP", source: said.into() };
            assert_eq!(error_text(&error), expected);
            let path = "x".to_owned();
            assert_eq!(
                error_text(&Error::PermissionDenied { path, source: said.into() }),
                expected
            );
        }
    }
}
