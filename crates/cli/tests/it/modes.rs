//! Who may read the files of a data directory.

use crate::support::cli::{Home, Ran};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The rights on a file, in octal.
fn mode(path: &Path) -> String {
    let mode = std::fs::metadata(path).unwrap().permissions().mode();
    format!("{:04o}", mode & 0o7777)
}

/// All below a directory with their rights, the directory itself among them.
fn modes(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = vec![(directory.to_owned(), mode(directory))];
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.push((path.clone(), mode(&path)));
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}

/// Asserts that only the owner has rights on anything below a directory.
fn assert_private(directory: &Path, least: usize) {
    let found = modes(directory);
    assert!(found.len() >= least, "{found:?}");
    // What the test itself writes there has the test's rights.
    let own = |path: &Path| path.file_name().is_some_and(|name| name == "server.log");
    for (path, mode) in found.into_iter().filter(|(path, _)| !own(path)) {
        let expected = if path.is_dir() { "0700" } else { "0600" };
        assert_eq!(mode, expected, "{}", path.display());
    }
}

/// Runs a command with a umask that takes nothing away.
fn with_open_umask(home: &Home, arguments: &str) -> Ran {
    let mut shell = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_loomline");
    let data = home.path("data");
    let line = format!(
        "umask 000; exec {program} --data {} {arguments}",
        data.display()
    );
    let output = shell.args(["-c", &line]).output().unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn loosen(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_data_directory_is_made_for_its_owner_alone() {
    let home = Home::new();
    let ran = with_open_umask(&home, "run 'hello' --thread k");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_private(&home.path("data"), 4);
}

#[test]
fn a_served_store_and_its_write_ahead_log_are_their_owners_alone() {
    let home = Home::new();
    with_open_umask(&home, "run 'hello' --thread k");
    let _server = home.server();
    let data = home.path("data");
    assert!(data.join("loomline.db-wal").exists() && data.join("loomline.db-shm").exists());
    assert_private(&data, 6);
}

#[test]
fn a_store_that_others_could_read_is_closed_to_them() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let data = home.path("data");
    let backup = data.join("loomline.db.backup-v1");
    std::fs::write(&backup, "old").unwrap();
    let files = [
        data.join("loomline.db"),
        data.join("loomline.db.lock"),
        backup,
    ];
    for file in &files {
        loosen(file, 0o644);
    }
    home.ok(&["run", "again", "--thread", "k"]);
    for file in files {
        assert_eq!(mode(&file), "0600", "{}", file.display());
    }
}

#[test]
fn doctor_warns_of_a_data_directory_that_others_may_read() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    assert!(!home.ok(&["doctor"]).contains("warn"));
    let data = home.path("data");
    loosen(&data, 0o755);
    loosen(&data.join("loomline.db"), 0o640);
    let said = home.ok(&["doctor"]);
    let place = data.display().to_string();
    let warned = format!(
        "warn data is readable by others: users other than the owner can read {place}, {place}/loomline.db\n"
    );
    assert!(said.contains(&warned), "{said}");
    let advice = format!("chmod go= {place} {place}/loomline.db\n");
    assert!(said.contains(&advice), "{said}");
    assert_eq!(mode(&data), "0755", "an operator may mean it");
}

#[test]
fn an_exported_file_has_the_users_own_umask() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let out = home.path("out.json");
    let ran = with_open_umask(
        &home,
        &format!("export --thread k --output {}", out.display()),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(mode(&out), "0666");
}
