//! Data that can't be written, and data of which a part is lost.

use crate::support::cli::Home;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory in which nothing can be written: a read-only mount where this process may mount, and else one without
/// the permission.
struct Medium {
    place: PathBuf,
    is_mounted: bool,
}

impl Medium {
    fn of(data: &Path, place: PathBuf) -> Self {
        std::fs::create_dir(&place).unwrap();
        let mount = |arguments: &[&str]| {
            let mut mount = Command::new("mount");
            mount.args(arguments).arg(&place);
            mount.output().is_ok_and(|it| it.status.success())
        };
        let source = data.to_str().unwrap();
        let is_mounted = mount(&["--bind", source]) && mount(&["-o", "remount,bind,ro"]);
        let place = if is_mounted { place } else { data.to_owned() };
        if !is_mounted {
            permit(&place, 0o555);
        }
        Self { place, is_mounted }
    }
}

impl Drop for Medium {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg(&self.place).status();
        } else {
            permit(&self.place, 0o755);
        }
    }
}

fn permit(place: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn assert_readable(home: &Home, place: &Path) {
    let read = |arguments: &[&str]| home.ok_at(place, arguments);
    assert!(read(&["threads", "list"]).contains("t1"));
    assert!(read(&["threads", "show", "t1"]).contains("hello"));
    assert!(read(&["export", "--thread", "t1"]).contains("hello"));
    let checked = read(&["doctor"]);
    assert!(checked.contains("ok  store is sound"), "{checked}");
}

#[test]
fn a_read_only_medium_can_be_listed_exported_and_checked() {
    let home = Home::new();
    home.ok(&["run", "say hello", "--thread", "t1"]);
    let medium = Medium::of(&home.data(), home.path("medium"));
    assert_readable(&home, &medium.place);
}

#[test]
fn a_read_only_medium_with_a_log_can_be_listed_exported_and_checked() {
    let home = Home::new();
    let mut server = home.server();
    let body = serde_json::json!({"content": "say hello"});
    server.post("/api/v1/threads/t1/messages", &body).unwrap();
    server.rest("t1");
    server.kill();
    let log = home.data().join("loomline.db-wal");
    assert!(std::fs::metadata(log).unwrap().len() > 0);
    for has_index in [true, false] {
        if !has_index {
            std::fs::remove_file(home.data().join("loomline.db-shm")).unwrap();
        }
        let place = home.path(&format!("medium-{has_index}"));
        let medium = Medium::of(&home.data(), place);
        assert_readable(&home, &medium.place);
    }
}

#[test]
fn a_log_without_its_database_is_not_served() {
    for is_empty in [false, true] {
        let home = Home::new();
        let mut server = home.server();
        let body = serde_json::json!({"content": "hello"});
        server.post("/api/v1/threads/t1/messages", &body).unwrap();
        server.rest("t1");
        server.kill();
        let store = home.data().join("loomline.db");
        std::fs::remove_file(&store).unwrap();
        if is_empty {
            std::fs::write(&store, "").unwrap();
        }
        let log = home.data().join("loomline.db-wal");
        let before = std::fs::read(&log).unwrap();
        for arguments in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["run", "hello"],
            &["threads", "list"],
        ] {
            let ran = home.run(arguments);
            assert_eq!(ran.code, 1, "{arguments:?}: {ran:?}");
            assert!(ran.err.contains("is missing or empty"), "{ran:?}");
            assert!(ran.err.contains("put the database back"), "{ran:?}");
        }
        let ran = home.run(&["doctor"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.out.contains("put the database back"), "{ran:?}");
        assert_eq!(std::fs::read(&log).unwrap(), before, "the log is as it was");
    }
}
