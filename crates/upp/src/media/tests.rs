use super::*;
use crate::content::UserContent;

#[test]
fn files_become_media_of_the_type_their_extension_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, [0, 255]).unwrap();
        path
    };
    let image = Image::from_path(file("a.JPEG")).unwrap();
    assert_eq!(image.mime_type(), "image/jpeg");
    assert_eq!(image.to_base64().unwrap(), "AP8=");
    assert_eq!(image.to_data_url().unwrap(), "data:image/jpeg;base64,AP8=");
    let audio = Audio::from_path(file("a.mp3")).unwrap();
    assert_eq!((audio.mime_type(), audio.size()), ("audio/mp3", Some(2)));
    let video = Video::from_path(file("a.mov")).unwrap();
    assert_eq!(video.to_bytes().unwrap().as_ref(), [0, 255]);
    let document = Document::from_path(file("a.pdf"), Some("T".into())).unwrap();
    assert!(document.is_pdf() && !document.is_text());
    assert_eq!(document.title(), Some("T"));
    assert!(matches!(
        document.media().source,
        MediaSource::Base64 { .. }
    ));
}

#[test]
fn a_missing_or_empty_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("none.png");
    let error = Image::from_path(&missing).unwrap_err();
    assert!(matches!(&error, MediaError::Unreadable { path, .. } if *path == missing));
    let empty = dir.path().join("empty.wav");
    std::fs::write(&empty, []).unwrap();
    assert!(matches!(
        Audio::from_path(&empty),
        Err(MediaError::Empty { path }) if path == empty
    ));
    assert!(matches!(
        Document::from_path(dir.path(), None),
        Err(MediaError::Unreadable { .. })
    ));
}

#[test]
fn an_address_is_not_fetched_and_has_no_bytes() {
    let image = Image::from_url("https://host.invalid/a.webp?x=1", None);
    assert_eq!(image.mime_type(), "image/webp");
    assert_eq!(image.to_url().unwrap(), "https://host.invalid/a.webp?x=1");
    assert!(!image.has_data());
    assert_eq!(image.size(), None);
    assert!(matches!(image.to_base64(), Err(MediaError::Source { .. })));
    assert!(matches!(
        image.to_data_url(),
        Err(MediaError::Source { .. })
    ));
    assert!(matches!(image.to_bytes(), Err(MediaError::Source { .. })));
    let named = Image::from_url("https://host.invalid/a", Some("image/gif"));
    assert_eq!(named.mime_type(), "image/gif");
}

#[test]
fn a_document_gives_only_what_its_source_is() {
    let text = Document::from_text("plain", None);
    assert!(text.is_text());
    assert_eq!(text.to_text().unwrap(), "plain");
    assert!(text.to_base64().is_err() && text.to_url().is_err());
    let bytes = Document::from_base64("AP8=", "application/pdf").unwrap();
    assert_eq!(bytes.to_base64().unwrap(), "AP8=");
    assert!(bytes.to_text().is_err() && bytes.to_url().is_err());
    let address = Document::from_url("https://x/y.pdf", None);
    assert_eq!(
        address.to_text().unwrap_err().to_string(),
        "the source is an address, not text"
    );
}

#[test]
fn base64_is_checked_when_media_are_made() {
    assert!(matches!(
        Video::from_base64("%", "video/mp4"),
        Err(MediaError::NotBase64(_))
    ));
    assert_eq!(
        Audio::from_base64("AP8=", "audio/wav")
            .unwrap()
            .to_bytes()
            .unwrap()
            .as_ref(),
        [0, 255]
    );
}

#[test]
fn media_go_to_a_block_and_come_back() {
    let image = Image::from_bytes(vec![1, 2, 3], "image/png").with_size(4, 5);
    let block = image.to_block();
    assert_eq!(Image::from_block(&block).unwrap(), image);
    assert_eq!(UserContent::from(image), block);
    let video = Video::from_bytes(vec![1], "video/mp4")
        .with_duration(1.5)
        .with_size(1, 2);
    assert_eq!(Video::from_block(&video.to_block()).unwrap(), video);
    let error = Audio::from_block(&block).unwrap_err();
    assert_eq!(error.to_string(), "the block is an image, not audio");
}

#[test]
fn the_size_is_that_of_the_bytes_whatever_their_form() {
    for bytes in [&[][..], &[1], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4]] {
        let data = BASE64.encode(bytes);
        let unpadded = data.trim_end_matches('=').to_owned();
        for data in [data, unpadded] {
            let media = Media::new(MediaSource::Base64 { data }, "a/b");
            assert_eq!(media.size(), Some(bytes.len()));
        }
    }
}
