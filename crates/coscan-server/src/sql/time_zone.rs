//! Names of time zones that PostgreSQL accepts. Besides names of regions, these are hours east of Greenwich, and POSIX
//! offsets, which count west of it.

/// The name that Arrow has for a zone, which is that of a region, or an offset such as `+02:00`, east of Greenwich.
/// `None` if there is no such zone.
pub(super) fn arrow_zone(name: &str) -> Option<String> {
    if let Ok(hours) = name.parse::<f64>() {
        return (hours.abs() < 24.0).then(|| offset((hours * 60.0).round() as i32));
    }
    // `<+02:00>-02:00` has the name of the zone, then the offset. Without an offset, the name is
    // the offset.
    if let Some((named, posix)) = name.strip_prefix('<').and_then(|name| name.split_once('>')) {
        return match posix {
            "" => minutes(named).or_else(|| minutes(&format!("+{named}"))).map(offset),
            posix => minutes(posix).map(|west| offset(-west)),
        };
    }
    let posix = ["UTC", "GMT"].into_iter().find_map(|of| name.strip_prefix(of)).unwrap_or(name);
    if let Some(west) = minutes(posix) {
        return Some(offset(-west));
    }
    if ["UTC", "GMT", "Z"].iter().any(|zone| name.eq_ignore_ascii_case(zone)) {
        return Some("UTC".to_owned());
    }
    name.parse::<arrow::array::timezone::Tz>().is_ok().then(|| name.to_owned())
}

/// The minutes of `+2`, `-02:30` or `+02:30:00`. The sign is required.
fn minutes(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let mut parts = rest.splitn(3, ':').map(|part| part.parse::<u16>().ok());
    let hours = parts.next()?.filter(|hours| *hours < 24)?;
    let minutes = parts.next().unwrap_or(Some(0)).filter(|minutes| *minutes < 60)?;
    let seconds = parts.next().unwrap_or(Some(0))?;
    (seconds == 0).then(|| sign * (i32::from(hours) * 60 + i32::from(minutes)))
}

fn offset(east: i32) -> String {
    let sign = if east < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", east.abs() / 60, east.abs() % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_as_in_postgresql() {
        for (name, zone) in [
            ("Europe/Amsterdam", Some("Europe/Amsterdam")),
            ("UTC", Some("UTC")),
            ("2", Some("+02:00")),
            ("-3.5", Some("-03:30")),
            ("+02:00", Some("-02:00")),
            ("UTC-5:30", Some("+05:30")),
            ("<+02:00>", Some("+02:00")),
            ("<02:00>", Some("+02:00")),
            ("utc", Some("UTC")),
            ("<+05:30>-05:30", Some("+05:30")),
            ("Atlantis", None),
            ("+25:00", None),
            ("1e9", None),
            ("<x", None),
            ("", None),
        ] {
            assert_eq!(arrow_zone(name).as_deref(), zone, "{name}");
        }
    }
}
