//! The MIME types of file extensions (UPP §6).

/// The MIME type of an unknown extension.
const UNKNOWN: &str = "application/octet-stream";

/// The extension of a path or an address, in lower case; query and fragment don't count.
fn extension(path: &str) -> Option<String> {
    let path = path.split(['?', '#']).next()?;
    // The authority of an address has dots of its own.
    let path = path.split_once("://").map_or(path, |(_, rest)| {
        rest.split_once('/').map_or("", |(_, path)| path)
    });
    let name = path.rsplit(['/', '\\']).next()?;
    let (_, extension) = name.rsplit_once('.')?;
    Some(extension.to_ascii_lowercase())
}

fn guess(path: &str, known: impl Fn(&str) -> Option<&'static str>) -> &'static str {
    extension(path)
        .and_then(|extension| known(&extension))
        .unwrap_or(UNKNOWN)
}

/// The MIME type of an image's path or address.
pub(super) fn image(path: &str) -> &'static str {
    guess(path, |extension| {
        Some(match extension {
            "jpg" | "jpeg" => "image/jpeg",
            "png" => "image/png",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "svg" => "image/svg+xml",
            "bmp" => "image/bmp",
            "ico" => "image/x-icon",
            _ => return None,
        })
    })
}

/// The MIME type of a document's path or address.
pub(super) fn document(path: &str) -> &'static str {
    guess(path, |extension| {
        Some(match extension {
            "pdf" => "application/pdf",
            "txt" | "text" | "md" | "markdown" => "text/plain",
            _ => return None,
        })
    })
}

/// The MIME type of an audio's path or address.
pub(super) fn audio(path: &str) -> &'static str {
    guess(path, |extension| {
        Some(match extension {
            "mp3" => "audio/mp3",
            "wav" => "audio/wav",
            "ogg" | "oga" => "audio/ogg",
            "flac" => "audio/flac",
            "aac" => "audio/aac",
            "m4a" => "audio/mp4",
            "webm" => "audio/webm",
            "aiff" | "aif" => "audio/aiff",
            _ => return None,
        })
    })
}

/// The MIME type of a video's path or address.
pub(super) fn video(path: &str) -> &'static str {
    guess(path, |extension| {
        Some(match extension {
            "mp4" | "m4v" => "video/mp4",
            "webm" => "video/webm",
            "ogv" | "ogg" => "video/ogg",
            "mov" => "video/quicktime",
            "avi" => "video/x-msvideo",
            "mpeg" | "mpg" => "video/mpeg",
            "wmv" => "video/x-ms-wmv",
            "3gp" | "3gpp" => "video/3gpp",
            "flv" => "video/x-flv",
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mime_type_follows_from_the_extension_whatever_its_case() {
        assert_eq!(image("a/b.JPG"), "image/jpeg");
        assert_eq!(image("https://a.png/x.webp?size=1.gif#a.bmp"), "image/webp");
        assert_eq!(document("notes.markdown"), "text/plain");
        assert_eq!(audio("a.m4a"), "audio/mp4");
        assert_eq!(video("a.ogg"), "video/ogg");
    }

    #[test]
    fn an_unknown_extension_is_octets() {
        for path in ["a", "a.", "a.tar.gz", "dir.png/a", "https://host.png", ""] {
            assert_eq!(image(path), UNKNOWN, "{path}");
        }
        assert_eq!(document("a.png"), UNKNOWN);
    }
}
