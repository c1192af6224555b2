use super::*;
use rcgen::{CertifiedKey as Made, KeyPair, generate_simple_self_signed};

fn write(files: &TlsConfig, at: SystemTime) -> Made<KeyPair> {
    let made = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for (path, text) in [
        (&files.cert, made.cert.pem()),
        (&files.key, made.signing_key.serialize_pem()),
    ] {
        std::fs::write(path, text).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(at).unwrap();
    }
    made
}

fn files(directory: &Path) -> TlsConfig {
    TlsConfig {
        cert: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    }
}

#[tokio::test(start_paused = true)]
async fn files_that_are_written_while_they_are_read_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    write(&files, SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let current = Arc::new(Current::load(files.clone(), provider).unwrap());
    // After the reading, and before anybody watches.
    let second = write(&files, SystemTime::UNIX_EPOCH + Duration::from_secs(2));
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_files(Arc::clone(&current)));
    tokio::time::sleep(LOOK * 2).await;
    let shown = current.key.read().unwrap();
    assert_eq!(shown.cert.first(), Some(second.cert.der()));
}
